"""Read launches from ``modelblaster.toml`` of the workspace: for generated or third-party files.

::

    [opencl.mm]
    global = "(N, M)"
    N = 1024
    A = "f32[M*N]"
    opts = "-DTILE=16"
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from mb_targets.model import Kernel, NotApplicable, TextEdit
from mb_targets.opencl.fragment import Fragment, FragmentError, add
from mb_targets.opencl.host import root
from mb_targets.opencl.hunks import apply

NAME = "modelblaster.toml"
_KEY = re.compile(r"[A-Za-z_]\w*")
_VALUE = r"""(?P<value>"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\[[^\]\n]*\]|[\w.+-]+)"""


def read(kernel: Kernel, path: Path) -> Fragment | None:
    """Read the section of a kernel, from the file nearest to its document; None where there is none.

    Raises:
        FragmentError: The file or the section cannot be read; the message says where and what was expected.
    """
    file = _file(path)
    return _section(kernel, file) if file else None


def restated(
    kernel: Kernel, path: Path, values: list[tuple[str, str]]
) -> tuple[Path, str, list[TextEdit]] | NotApplicable:
    """Give the edits of a kernel's section that make it state other values.

    Args:
        kernel: The kernel.
        path: Its document.
        values: What keys are to say, as a comment would say it; ``none`` for no local size.

    Returns:
        The file, its text, and the edits.
    """
    file = _file(path)
    try:
        text = file.read_bytes().decode() if file else ""
    except (OSError, UnicodeDecodeError):
        text = ""
    header = re.search(
        rf"^[ \t]*\[[ \t]*opencl[ \t]*\.[ \t]*(?P<q>[\"']?){kernel.name}(?P=q)[ \t]*\][^\n]*\n",
        text,
        re.MULTILINE,
    )
    edits = _edits(text, header.end(), values) if header else []
    if file is None or not edits or not _say(apply(text, edits), kernel, values):
        return NotApplicable(
            f"it launches `{kernel.name}` over other sizes or with other options, which {NAME} states "
            "in a way that cannot be edited safely; a form that keeps the launch is offered instead"
        )
    return file, text, edits


def _edits(text: str, start: int, values: list[tuple[str, str]]) -> list[TextEdit]:
    following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, start)
    end = following.start() if following else len(text)
    edits: list[TextEdit] = []
    for key, value in values:
        written = value if key == "opts" else json.dumps(value)
        found = re.compile(rf"^[ \t]*{key}[ \t]*=[ \t]*{_VALUE}", re.MULTILINE).search(text, start, end)
        if found:
            edits.append(TextEdit(found.start("value"), found.end("value"), written))
        else:
            line_end = "\r\n" if "\r\n" in text else "\n"
            edits.append(TextEdit(start, start, f"{key} = {written}{line_end}"))
    return edits


def _say(text: str, kernel: Kernel, values: list[tuple[str, str]]) -> bool:
    """Tell whether a file says so; how TOML is written has more ways than are edited here."""
    try:
        section = tomllib.loads(text)["opencl"][kernel.name]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return False
    return all(section.get(k) == (json.loads(v) if k == "opts" else v) for k, v in values)


def _file(path: Path) -> Path | None:
    """Find the settings nearest to a document."""
    top = root(path)
    for folder in path.absolute().parents:
        file = folder / NAME
        if file.is_file():
            return file
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
