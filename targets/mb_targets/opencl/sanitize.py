"""Which Oclgrind checks a variant calls for, and the way to run one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mb_targets.model import Kernel, Variant

if TYPE_CHECKING:
    from mb_targets.protocol import Data, Launch

BOUNDS = "oclgrind"
RACES = "oclgrind races"
UNINITIALISED = "oclgrind uninitialised"


def called_for(kernel: Kernel, variant: Variant) -> tuple[str, ...]:
    """Name the checks."""
    return ()


def run(
    name: str, variant: Variant, options: Sequence[str], launch: Launch, inputs: Mapping[str, Data]
) -> str | None:
    """Run one check."""
    return None
