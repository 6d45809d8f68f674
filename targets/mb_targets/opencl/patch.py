"""Turn a variant into edits of the user's documents: the kernel, and what states its NDRange."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mb_targets.model import DocumentEdits, Kernel, LaunchSpec, NotApplicable, TextEdit, Variant, digest
from mb_targets.opencl import host
from mb_targets.opencl.host_edit import needs_multiples, relaunched
from mb_targets.opencl.hunks import hunks
from mb_targets.opencl.restate import promises, restated


def patch(
    kernel: Kernel, launch: LaunchSpec, variant: Variant, path: Path, text: str
) -> Sequence[DocumentEdits] | NotApplicable:
    """Edit the kernel, and every place that says how it is launched where the variant changes that.

    Args:
        kernel: The original.
        launch: Its launch.
        variant: What replaces it.
        path: The document.
        text: Its text now.
    """
    at = _place(kernel, text)
    if at is None:
        return NotApplicable(f"`{kernel.name}` is no longer in {path.name} as it was when this was made")
    edits = _kernel_edits(kernel, variant, at)
    by_document: dict[Path, tuple[str, list[TextEdit]]] = {path.absolute(): (text, edits)}
    if variant.launch is not None or variant.options:
        made = _relaunched(kernel, launch, variant, path, text, at)
        if isinstance(made, NotApplicable):
            return made
        for document, content, found in made:
            by_document.setdefault(document, (content, []))[1].extend(found)
    return [_document(p, content, made) for p, (content, made) in by_document.items() if made]


def _relaunched(
    kernel: Kernel, launch: LaunchSpec, variant: Variant, path: Path, text: str, at: int
) -> list[tuple[Path, str, list[TextEdit]]] | NotApplicable:
    """Edit what states the launch: host programs, settings, the comment; each with its text."""
    search = host.search(kernel, path, text)
    if search.incomplete:
        return NotApplicable(
            f"it changes how `{kernel.name}` is launched, and not all of the workspace could be searched for "
            f"launches: {search.incomplete}; a form that keeps the launch is offered instead"
        )
    change = variant.launch
    promised = promises(launch)
    made: list[tuple[Path, str, list[TextEdit]]] = []
    for number, site in enumerate(search.sites):
        label = kernel.name + (str(number) if number else "")
        edits = relaunched(site, change, variant.options, label, promised)
        if isinstance(edits, NotApplicable):
            return edits
        made.append((site.path, site.text, edits))
    if (
        change is not None
        and not made
        and any(p % m for p, m in zip(promised, change.multiples, strict=False))
    ):
        return needs_multiples(change, f"what is said about the sizes of `{kernel.name}`")
    stated = restated(kernel, launch, variant, path, at, needed=not made)
    if isinstance(stated, NotApplicable):
        return stated
    return [*made, *((document, text if content is None else content, e) for document, content, e in stated)]


def _document(path: Path, text: str, edits: list[TextEdit]) -> DocumentEdits:
    """Put edits in order; two sites may ask for the same one."""
    ordered = sorted(dict.fromkeys(edits), key=lambda e: (e.start, e.end))
    return DocumentEdits(str(path), digest(text), tuple(ordered))


def _place(kernel: Kernel, text: str) -> int | None:
    """Find where the kernel's source begins in the document; the kernel's own text decides."""
    if text.startswith(kernel.source, kernel.offset):
        return kernel.offset
    found = text.find(kernel.text)
    unique = found >= 0 and text.find(kernel.text, found + 1) < 0
    return found - kernel.start if unique else None


def _kernel_edits(kernel: Kernel, variant: Variant, at: int) -> list[TextEdit]:
    before, after = kernel.source[: kernel.start], kernel.source[kernel.end :]
    if variant.source.startswith(before) and variant.source.endswith(after):
        new = variant.source[kernel.start : len(variant.source) - len(after)]
        return hunks(kernel.text, new, at + kernel.start)
    return hunks(kernel.source, variant.source, at)
