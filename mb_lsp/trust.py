"""Which workspaces the user trusts: nothing of any other is ever built or run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Trust:
    """The list of trusted folders, by real path, in the user's data folder.

    Args:
        data: The user's data folder; made when something is first trusted.
    """

    def __init__(self, data: Path) -> None:
        self._file = data / "trusted.json"
        self._stamp: tuple[int, int] | None = None
        self._folders: frozenset[str] = frozenset()

    def trusted(self, folder: Path) -> bool:
        """Tell whether a folder, or one that holds it, is trusted."""
        real = Path(os.path.realpath(folder))
        known = self._read()
        return any(str(part) in known for part in (real, *real.parents))

    def trust(self, folder: Path) -> None:
        """Trust a folder and all below it, from now on and in every window.

        Raises:
            OSError: The list cannot be written.
        """
        known = sorted({*self._read(), os.path.realpath(folder)})
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(known)))
        fresh.replace(self._file)

    def _read(self) -> frozenset[str]:
        """Read the list again only when the file changed: another window may have written it."""
        try:
            stat = self._file.stat()
            stamp = (stat.st_mtime_ns, stat.st_ino)
            if stamp != self._stamp:
                self._folders = frozenset(msgspec.json.decode(self._file.read_bytes(), type=list[str]))
                self._stamp = stamp
        except (OSError, msgspec.MsgspecError):
            # A missing or damaged list trusts nothing.
            self._folders, self._stamp = frozenset(), None
        return self._folders


def workspace_of(path: Path | None, roots: Sequence[Path]) -> Path | None:
    """Give the folder whose trust decides for a document.

    That is the innermost workspace folder that really holds it, links followed, else its own folder; for
    unsaved text the first workspace folder, and None where there is none either: the text is the user's own.
    """
    if path is None:
        return roots[0] if roots else None
    real = Path(os.path.realpath(path))
    holding = [root for root in map(Path, map(os.path.realpath, roots)) if real.is_relative_to(root)]
    return max(holding, key=lambda root: len(root.parts)) if holding else real.parent
