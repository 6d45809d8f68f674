"""OpenCL C: kernels in ``.cl`` files and raw strings, on any OpenCL device.

Only detection is imported with the package: a server needs it as a document opens. The lifted form behind
launches, states and actions costs 0.1 s of CPU to import, so each part is imported when first used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mb_targets.model import (
    Action,
    Device,
    DocumentEdits,
    Kernel,
    LaunchSpec,
    NotApplicable,
    Proposal,
    State,
    Variant,
)
from mb_targets.opencl import detect, scan

if TYPE_CHECKING:
    from mb_targets.protocol import Array, Diagnostic, Finding, Launch, Question, Scanner, Worker


class OpenCLTarget:
    """The OpenCL target; each method's work is a module of this package."""

    name: ClassVar[str] = "opencl"
    languages: ClassVar[frozenset[str]] = frozenset({"opencl", "c", "cpp", "python"})
    suffixes: ClassVar[frozenset[str]] = frozenset({".cl", ".clh", ".ocl"})

    def find_kernels(self, text: str, language: str) -> Sequence[Kernel]:
        """Scan for kernels; in C, C++ and Python only inside raw and triple-quoted strings."""
        return detect.find_kernels(text, language)

    def scan(self, text: str, language: str) -> Scanner | None:
        """Follow a document that is all OpenCL C; in host programs strings come and go with any edit."""
        return scan.Scan(text, language) if language not in detect.HOST_LANGUAGES else None

    def infer_launch(self, kernel: Kernel, path: Path | None) -> LaunchSpec | Question:
        """Take the comment, the settings, the host code or a guess, in this order."""
        from mb_targets.opencl import launch

        return launch.infer_launch(kernel, path)

    def describe_launch(self, kernel: Kernel, launch: LaunchSpec) -> str:
        """Write the launch as ``// mb:`` lines."""
        from mb_targets.opencl import comment

        return comment.describe_launch(kernel, launch)

    def state(self, kernel: Kernel, launch: LaunchSpec, device: Device) -> State:
        """Classify the lifted form, or the tokens where the kernel does not lift."""
        from mb_targets.opencl import state

        return state.state(kernel, launch, device)

    def features(self, kernel: Kernel) -> Sequence[int]:
        """Count token classes, calls, accesses and loops."""
        return detect.features(kernel)

    def propose(
        self, kernel: Kernel, launch: LaunchSpec, device: Device, variant: Variant
    ) -> Sequence[Proposal]:
        """List what the catalogue holds to be possible now."""
        from mb_targets.opencl import actions

        return actions.propose(kernel, launch, device, variant)

    def apply(
        self, kernel: Kernel, launch: LaunchSpec, device: Device, variant: Variant, action: Action
    ) -> Variant | NotApplicable:
        """Apply one action of the catalogue."""
        from mb_targets.opencl import actions

        return actions.apply(kernel, launch, device, variant, action)

    def patch(
        self, kernel: Kernel, launch: LaunchSpec, variant: Variant, path: Path, text: str
    ) -> Sequence[DocumentEdits] | NotApplicable:
        """Edit the kernel and every place that launches it."""
        from mb_targets.opencl import patch

        return patch.patch(kernel, launch, variant, path, text)

    def reference(
        self, kernel: Kernel, launch: LaunchSpec, concrete: Launch, inputs: Mapping[str, Array]
    ) -> Mapping[str, Array] | None:
        """Evaluate the lifted form in float64."""
        from mb_targets.opencl.reference import reference  # numpy: never in the server process

        return reference(kernel, launch, concrete, inputs)

    def sanitizers(self, kernel: Kernel, variant: Variant, guarded: bool = True) -> Sequence[str]:
        """Name the Oclgrind runs that the variant calls for."""
        from mb_targets.opencl import sanitize

        return sanitize.called_for(kernel, variant, guarded)

    def worker(self, choice: str = "") -> Worker:
        """Open an OpenCL device."""
        from mb_targets.opencl.device import OpenCLWorker  # pyopencl: never in the server process

        return OpenCLWorker(choice)

    def diagnose(self, kernel: Kernel, options: Sequence[str]) -> Sequence[Diagnostic]:
        """Ask clang in a helper process."""
        from mb_targets.opencl import problems

        return problems.problems(kernel, options)

    def doctor(self) -> Sequence[Finding]:
        """Look for runtimes and tools."""
        from mb_targets.opencl import runtimes

        return runtimes.findings()
