"""Find targets by name, language or file suffix; each is an entry point, imported when first asked for."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from pathlib import PurePath
from typing import cast

from mb_targets.errors import TargetUnavailable
from mb_targets.protocol import Target

GROUP = "modelblaster.targets"


def names() -> list[str]:
    """List the installed targets without importing them."""
    return sorted(e.name for e in entry_points(group=GROUP))


@cache
def load(name: str) -> Target:
    """Import and make one target.

    Raises:
        TargetUnavailable: No target of that name is installed.
    """
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise TargetUnavailable(f"no target named {name!r} is installed; there are: {', '.join(names())}")
    return cast("Target", next(iter(found)).load()())


def for_path(path: PurePath) -> list[Target]:
    """List the targets that read files of this suffix."""
    return [t for t in map(load, names()) if path.suffix in t.suffixes]


def for_language(language: str) -> list[Target]:
    """List the targets that read this LSP language id."""
    return [t for t in map(load, names()) if language in t.languages]
