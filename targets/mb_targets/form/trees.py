"""Work groups as loops: barriers fission the body, local trees become the folds that they compute."""

from __future__ import annotations

from mb_targets.form.dialect import Unliftable
from mb_targets.form.nest import Stmt


def without_items(body: tuple[Stmt, ...], dim: int, size: int, name: str) -> tuple[Stmt, ...]:
    """Write the items of a work group as loops."""
    raise Unliftable("uses local memory")
