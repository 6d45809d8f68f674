"""Read launches from ``modelblaster.toml`` of the workspace: for generated or third-party files.

::

    [opencl.mm]
    global = "(N, M)"
    N = 1024
    A = "f32[M*N]"
    opts = "-DTILE=16"
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from mb_targets.model import Kernel
from mb_targets.opencl.fragment import Fragment, FragmentError, add
from mb_targets.opencl.host import root

NAME = "modelblaster.toml"
_KEY = re.compile(r"[A-Za-z_]\w*")


def read(kernel: Kernel, path: Path) -> Fragment | None:
    """Read the section of a kernel, from the file nearest to its document; None where there is none.

    Raises:
        FragmentError: The file or the section cannot be read; the message says where and what was expected.
    """
    top = root(path)
    for folder in path.absolute().parents:
        file = folder / NAME
        if file.is_file():
            return _section(kernel, file)
        if folder == top:
            return None
    return None


def _section(kernel: Kernel, file: Path) -> Fragment | None:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FragmentError(f"{file.name} cannot be read: {error}") from error
    sections = content.get("opencl", {})
    section = sections.get(kernel.name) if isinstance(sections, dict) else None
    if not isinstance(section, dict):
        return None
    fragment = Fragment("settings")
    for key, value in section.items():
        where = f"{file.name}, [opencl.{kernel.name}]"
        name, _, multiple = key.partition("%")
        if not _KEY.fullmatch(name):
            raise FragmentError(f"{where}: {key!r} is no name")
        try:
            fragment = (
                add(fragment, name, multiple, "%") if multiple else add(fragment, key, _text(key, value))
            )
        except FragmentError as error:
            raise FragmentError(f"{where}: {error}") from error
    return fragment


def _text(key: str, value: object) -> str:
    """Write a value of TOML as an item of a comment has it."""
    if key == "opts":
        words = value if isinstance(value, list) else [value]
        return '"' + " ".join(str(w).replace("\\", "\\\\").replace('"', '\\"') for w in words) + '"'
    if isinstance(value, list):
        return f"({','.join(map(str, value))},)"
    return str(value)
