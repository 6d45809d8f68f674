"""Turn a variant into edits of the user's documents: the kernel, and what states its NDRange."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mb_targets.model import DocumentEdits, Kernel, LaunchSpec, NotApplicable, TextEdit, Variant, digest
from mb_targets.opencl.hunks import hunks
from mb_targets.opencl.restate import restated


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
    if isinstance(edits, NotApplicable):
        return edits
    if variant.launch is not None or variant.options:
        stated = restated(kernel, launch, variant, at)
        if isinstance(stated, NotApplicable):
            return stated
        edits = [*edits, *stated]
    ordered = tuple(sorted(edits, key=lambda e: (e.start, e.end)))
    return [DocumentEdits(str(path.absolute()), digest(text), ordered)]


def _place(kernel: Kernel, text: str) -> int | None:
    """Find where the kernel's source begins in the document; the kernel's own text decides."""
    if text.startswith(kernel.source, kernel.offset):
        return kernel.offset
    found = text.find(kernel.text)
    unique = found >= 0 and text.find(kernel.text, found + 1) < 0
    return found - kernel.start if unique else None


def _kernel_edits(kernel: Kernel, variant: Variant, at: int) -> list[TextEdit] | NotApplicable:
    before, after = kernel.source[: kernel.start], kernel.source[kernel.end :]
    if variant.source.startswith(before) and variant.source.endswith(after):
        new = variant.source[kernel.start : len(variant.source) - len(after)]
        return hunks(kernel.text, new, at + kernel.start)
    return hunks(kernel.source, variant.source, at)
