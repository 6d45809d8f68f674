"""Which Oclgrind checks a variant calls for, and the way to run one.

Comparing numbers on a CPU device does not find races: its work items run in order. Oclgrind interprets the
kernel and watches every access. Each run is a short process of its own, about 0.05 s for a thousand work
items.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

from mb_targets.model import ITEM_BYTES, Kernel, Variant
from mb_targets.opencl import runtimes, simulator
from mb_targets.opencl.tokens import tokens, without_comments

if TYPE_CHECKING:
    from mb_targets.protocol import Data, Launch

MEMORY = "oclgrind"
RACES = "oclgrind races"
UNINITIALISED = "oclgrind uninitialised"
SECONDS = 20

_FLAGS = {MEMORY: (), RACES: ("--data-races",), UNINITIALISED: ("--uninitialized",)}
_SHARING = re.compile(
    r"\b(?:(?:__)?local|\w*barrier|atom(?:ic)?_\w+|work_group_\w+|sub_group_\w+|mem_fence)\b"
)
_ARRAY = re.compile(r"\b(?!return\b|else\b|case\b|goto\b)[A-Za-z_]\w*\s+\w+\s*\[[^\]]*\]\s*[;=,\[]")
_NO_VALUE = re.compile(
    r"\b(?:u?(?:char|short|int|long)|float|double|half|bool|size_t)\d*\s+"
    r"(?:(?:[^;{}()]*,\s*)?\w+\s*;|\w+\s*,\s*\w+\s*[;,=])"
)
_ID = re.compile(r"get_\w+_(?:id|size|groups)$|get_num_groups$")
_FLOAT_CODES = {2: "e", 4: "f", 8: "d"}


def called_for(kernel: Kernel, variant: Variant, guarded: bool = True) -> tuple[str, ...]:
    """Name the checks that a variant's constructs call for.

    Bounds and races where items can meet (local memory, barriers, atomics, another launch, another mapping
    of work to items), and where there are private arrays, which no guard page watches; otherwise none. With
    them, uninitialised reads where anything starts without a value: poisoned outputs show the rest. Where the
    device has no guard pages, bounds always.
    """
    text = without_comments(variant.source)
    meets = _SHARING.search(text) is not None or _ARRAY.search(text) is not None
    moved = variant.launch is not None or _mapping(kernel.source) != _mapping(variant.source)
    if not meets and not moved:
        return () if guarded else (MEMORY,)
    return tuple(_FLAGS) if meets or _NO_VALUE.search(text) else (MEMORY, RACES)


def run(
    name: str, variant: Variant, options: Sequence[str], launch: Launch, inputs: Mapping[str, Data]
) -> str | None:
    """Run one check on one small launch.

    Returns:
        The first finding in a sentence with its lines; empty when there is none; None when the check could
        not be made: Oclgrind is missing, does not know a construct, was not done in time, or there is no work
        item to watch.
    """
    program = runtimes.oclgrind()
    if program is None or name not in _FLAGS or 0 in launch.global_size:
        return None
    with tempfile.TemporaryDirectory(prefix="oclgrind-") as made:
        folder = Path(made)
        (folder / "kernel.cl").write_text(variant.source)
        (folder / "kernel.sim").write_text(_simulation(variant.name, launch, inputs))
        if not _simulate(program, _FLAGS[name], [*options, *variant.options], folder):
            return None
        return explain((folder / "log").read_text(errors="replace"))


def explain(log: str) -> str:
    """Make one sentence of the first finding of a log; empty when there is none."""
    head, _, rest = log.strip().partition("\n")
    if not head:
        return ""
    items = iter(re.findall(r"Global\(([\d,]+)\)", rest))
    told = []
    for line, text in re.findall(r"At line ([1-9]\d*) \(column \d+\) of [^\n]*\n\s*([^\n]*)", rest)[:2]:
        item = next(items, "")
        told.append(f"line {line} `{text.strip()}`" + (f" (work item {item})" if item else ""))
    counted = re.search(r"Only \d+ out of \d+ work-items[^\n]*", rest)
    what = re.sub(r"( memory)? address 0x[0-9a-f]+", " memory", head).strip()
    parts = [what, " and ".join(told), counted.group().lower() if counted else ""]
    return ": ".join(filter(None, parts))


def _simulate(program: Path, flags: Sequence[str], options: Sequence[str], folder: Path) -> bool:
    """Run the simulator in a folder; True when it ran the kernel to its end."""
    kept = [o for o in options if not o.startswith("-cl-std=")]  # it speaks 1.2; what needs more is refused
    environment = dict(os.environ)
    if program.suffix == ".so":
        environment |= simulator.environment(program, flags, folder)
        command = [sys.executable, "-P", "-W", "ignore", "-m", simulator.__name__, " ".join(kept)]
    else:
        limits = ["--max-errors", "1", "--max-wgsize", "4096", "--local-mem-size", str(1 << 20)]
        limits += ["--constant-mem-size", str(1 << 26), "--log", "log"]
        command = [str(program), *flags, *limits, "--build-options", " ".join(kept), "kernel.sim"]
    done = subprocess.run(
        ["timeout", "--foreground", "-s", "KILL", str(SECONDS), *command],
        env=environment,
        cwd=folder,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return done.returncode == 0 and (folder / "log").exists()


def _simulation(name: str, launch: Launch, inputs: Mapping[str, Data]) -> str:
    """Write a launch in the simulator's own format."""
    padded = (*launch.global_size, 1, 1)[:3]
    local = (*(launch.local_size or _some_local(launch.global_size)), 1, 1)[:3]
    lines = ["kernel.cl", name, " ".join(map(str, padded)), " ".join(map(str, local))]
    for parameter in launch.order:
        if parameter in launch.local_bytes:
            lines.append(f"<size={max(1, launch.local_bytes[parameter])}>")
        elif parameter in launch.buffers:
            lines += _bytes(inputs[parameter]) if launch.buffers[parameter] else ["<null>"]
        else:
            lines += _bytes(_scalar(launch, parameter))
    return "\n".join(lines) + "\n"


def _bytes(data: Data) -> list[str]:
    view = memoryview(data).cast("B")
    if len(view) % 4:
        return [f"<size={len(view)} uchar hex>", view.hex(" ")]
    return [f"<size={len(view)} uint hex>", " ".join(map("{:x}".format, view.cast("I")))]


def _scalar(launch: Launch, name: str) -> bytes:
    dtype, lanes = launch.dtypes[name], launch.lanes.get(name, 1)
    value, size = launch.scalars[name], ITEM_BYTES[dtype]
    if dtype.startswith("f"):
        one = struct.pack(_FLOAT_CODES[size], value)
    else:
        one = int(value).to_bytes(size, "little", signed=dtype.startswith("i"))
    return one * (4 if lanes == 3 else lanes)


def _some_local(global_size: Sequence[int]) -> tuple[int, ...]:
    """Choose a work-group size where the launch leaves it to the runtime."""
    return gcd(global_size[0], 64), *(1 for _ in global_size[1:])


def _mapping(source: str) -> frozenset[str]:
    """Give what a source computes from work-item functions: each such expression, to its statement's end."""
    found = set()
    words = tokens(source)
    for place, word in enumerate(words):
        if _ID.match(word):
            start = max((i for i, w in enumerate(words[:place]) if w in ("=", ";", "{", "}")), default=-1)
            end = next((i for i in range(place, len(words)) if words[i] in (";", "{", "}")), len(words))
            found.add(" ".join(words[start + 1 : end]))
    return frozenset(found)
