"""Rewrite the ``// mb:`` lines above a kernel for a variant that needs another NDRange or other options."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from mb_targets import expression
from mb_targets.model import Kernel, LaunchChange, LaunchSpec, NotApplicable, TextEdit, Variant
from mb_targets.opencl import comment, settings
from mb_targets.opencl.fragment import FragmentError


def changed_sizes(
    change: LaunchChange, global_size: tuple[str, ...], local_size: tuple[str, ...] | None
) -> tuple[expression.Expression, ...]:
    """Give the global sizes that a change makes of these expressions, simplified."""
    known = {f"G{i}": expression.parse(s) for i, s in enumerate(global_size)}
    known |= {f"L{i}": expression.parse(s) for i, s in enumerate(local_size or ())}
    ones = {f"{letter}{i}": expression.Number(1) for letter in "GL" for i in range(3)}
    parsed = (expression.parse(s) for s in change.global_size)
    return tuple(expression.simplify(expression.substitute(e, ones | known)) for e in parsed)


def restated(
    kernel: Kernel, launch: LaunchSpec, variant: Variant, path: Path, at: int, needed: bool
) -> list[tuple[Path, str | None, list[TextEdit]]] | NotApplicable:
    """Edit the lines above the kernel, or the settings, so that they state what the variant needs.

    Args:
        kernel: The original.
        launch: Its launch.
        variant: What replaces it.
        path: The document.
        at: Where the kernel's source begins in the document.
        needed: Whether nothing else states the launch.

    Returns:
        The file, its text where that is not the document's, and its edits.
    """
    values = _values(launch, variant)
    if launch.origin == "settings":
        made = settings.restated(kernel, path, values)
        return made if isinstance(made, NotApplicable) else [made]
    if launch.origin != "comment":
        return _nothing_states_it(kernel) if needed else []
    try:
        stated = {item.key: item for item in comment.items(kernel) if item.sign == "="}
    except FragmentError as error:
        return NotApplicable(str(error))
    edits, missing = [], []
    for key, value in values:
        item = stated.get(key)
        if item:
            edits.append(TextEdit(at + item.start, at + item.start + len(item.value), value))
        elif value != "none":
            missing.append(f"{key}={value}")
    return [(path.absolute(), None, [*edits, *_inserted(kernel, missing, at)])]


def promises(launch: LaunchSpec) -> list[int]:
    """Give what each global size is a multiple of at all sizes that a launch spec allows; 0 for no items."""
    known = {s.name: int(s.value) if s.low == s.high else s.multiple for s in launch.symbols}
    return [expression.divisor(expression.parse(size), known) for size in launch.global_size]


def _nothing_states_it(kernel: Kernel) -> NotApplicable:
    return NotApplicable(
        f"it launches `{kernel.name}` over other sizes or with other options, and nothing in the workspace "
        "that could be edited says how it is launched; a form that keeps the launch is offered instead"
    )


def _values(launch: LaunchSpec, variant: Variant) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    change = variant.launch
    if change is not None:
        sizes = [expression.text(e) for e in changed_sizes(change, launch.global_size, launch.local_size)]
        found.append(("global", comment.sizes_text(sizes)))
        local = comment.sizes_text(map(str, change.local_size)) if change.local_size else "none"
        found.append(("local", local))
    if variant.options:
        options = shlex.join([*launch.options, *variant.options])
        found.append(("opts", json.dumps(options, ensure_ascii=False)))
    return found


def _inserted(kernel: Kernel, words: list[str], at: int) -> list[TextEdit]:
    """Put what no line states yet on a line of its own, directly above the kernel."""
    if not words:
        return []
    line = kernel.source.rfind("\n", 0, kernel.start) + 1
    end = "\r\n" if "\r\n" in kernel.source else "\n"
    indent = kernel.source[line : kernel.start]
    indent = indent if not indent.strip() else ""
    return [TextEdit(at + line, at + line, f"{indent}// mb: {' '.join(words)}{end}")]
