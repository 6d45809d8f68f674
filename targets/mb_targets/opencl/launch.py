"""Work out how to launch a kernel, from the best source there is."""

from __future__ import annotations

from pathlib import Path

from mb_targets.model import Kernel, LaunchSpec
from mb_targets.opencl import comment
from mb_targets.opencl.fragment import Fragment, FragmentError, merge
from mb_targets.opencl.infer import infer
from mb_targets.opencl.missing import missing_macros
from mb_targets.opencl.resolve import resolve
from mb_targets.protocol import Question


def infer_launch(kernel: Kernel, path: Path | None) -> LaunchSpec | Question:
    """Take what the comment above the kernel says, then the settings, then host code; guess the rest."""
    try:
        stated = [part for part in (comment.read(kernel),) if part]
    except FragmentError as error:
        return Question(str(error), "")
    said = merge(stated) if stated else Fragment("inferred")
    missing = missing_macros(kernel, said.options or ())
    if missing:
        return _ask_macros(kernel, missing, said.options or ())
    return resolve(kernel, infer(kernel, said))


def _ask_macros(kernel: Kernel, missing: list[str], options: tuple[str, ...]) -> Question:
    """Real files get macros from their host's ``-D``; which values is a question."""
    listed = ", ".join(missing)
    verb = "is a macro" if len(missing) == 1 else "are macros"
    known = " ".join([*options, *(f"-D{name}=?" for name in missing)])
    return Question(
        f"`{kernel.name}` needs {listed}, which {verb} that nothing here defines; say what to build with",
        f'// mb: opts="{known}"',
    )
