"""Work out how to launch a kernel, from the best source there is."""

from __future__ import annotations

from pathlib import Path

from mb_targets.model import Kernel, LaunchSpec
from mb_targets.opencl import comment
from mb_targets.opencl.fragment import Fragment, FragmentError, merge
from mb_targets.opencl.resolve import resolve
from mb_targets.protocol import Question


def infer_launch(kernel: Kernel, path: Path | None) -> LaunchSpec | Question:
    """Take the comment above the kernel."""
    try:
        stated = comment.read(kernel)
    except FragmentError as error:
        return Question(str(error), "")
    parts = [part for part in (stated,) if part]
    return resolve(kernel, merge(parts) if parts else Fragment("inferred"))
