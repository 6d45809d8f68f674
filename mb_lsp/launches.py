"""The launch of a kernel as the user's files state it now, to be compared with the one that was measured."""

from __future__ import annotations

from pathlib import Path

from mb_targets import registry
from mb_targets.errors import TargetError
from mb_targets.model import Kernel
from mb_targets.protocol import Question


def described(kernel: Kernel, path: Path | None) -> str:
    """Describe the launch that the comment, the settings, host code and the kernel itself give, unprobed.

    Reads the workspace, so it belongs beside the event loop. A question is its own description: answering it
    makes another launch.

    Args:
        kernel: The kernel.
        path: Its document, None for unsaved text.
    """
    try:
        target = registry.load(kernel.target)
        found = target.infer_launch(kernel, path)
        if isinstance(found, Question):
            return f"{found.text}\n{found.comment}"
        return target.describe_launch(kernel, found)
    except TargetError as error:
        return str(error)
