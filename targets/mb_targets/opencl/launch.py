"""Work out how to launch a kernel, from the best source there is."""

from __future__ import annotations

from pathlib import Path

from mb_targets.model import Kernel, LaunchSpec
from mb_targets.opencl import comment, host, host_launch, settings
from mb_targets.opencl.fragment import Fragment, FragmentError, merge
from mb_targets.opencl.infer import infer
from mb_targets.opencl.missing import missing_macros
from mb_targets.opencl.resolve import resolve
from mb_targets.protocol import Question


def infer_launch(kernel: Kernel, path: Path | None) -> LaunchSpec | Question:
    """Take the comment above the kernel, then the settings, then host code, and guess what none of them says.

    Args:
        kernel: The kernel.
        path: Its document, whose workspace is read; None for unsaved text.
    """
    try:
        said = _said(kernel, path)
    except FragmentError as error:
        return Question(str(error), "")
    missing = missing_macros(kernel, said.options or ())
    if missing:
        return _ask_macros(kernel, missing, said.options or ())
    return resolve(kernel, infer(kernel, said))


def _said(kernel: Kernel, path: Path | None) -> Fragment:
    """Put together what people wrote; host code is only read where no one wrote an NDRange."""
    parts = [part for part in (comment.read(kernel), settings.read(kernel, path) if path else None) if part]
    if path and not any(part.global_size for part in parts):
        found = host_launch.read(kernel, host.search(kernel, path).sites)
        parts += [found] if found else []
    return merge(parts) if parts else Fragment("inferred")


def _ask_macros(kernel: Kernel, missing: list[str], options: tuple[str, ...]) -> Question:
    """Real files get macros from their host's ``-D``; which values is a question."""
    known = " ".join([*options, *(f"-D{name}=?" for name in missing)])
    return Question(
        f"`{kernel.name}` uses {', '.join(missing)}, which nothing here defines; "
        "if the program that builds it passes a value with -D, say which",
        f'// mb: opts="{known}"',
    )
