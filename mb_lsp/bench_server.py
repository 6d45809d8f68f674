"""``modelblaster bench server``: what the language server costs, each figure beside its bar."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mb_lsp import processes
from mb_lsp.problems import Code, CommandError
from mb_lsp.rpc import Client, Json
from mb_targets import registry

EDITS = 60
HOVERS = 300
CANCEL_WAIT_SECONDS = 60.0
SETTLE_SECONDS = 10.0

_BLOCK = """__kernel void scale_{n}(__global const float *src, __global float *dst, const int n, float by)
{{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < {n} % 7 + 2; k++)
        sum += src[i] * by + (float)k;
    dst[i] = sum;
}}

"""


class Figure(msgspec.Struct, frozen=True):
    """One measured figure; ``bar`` is the most it may be, None where it is only shown."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether it is within its bar."""
        return self.bar is None or self.value <= self.bar


@dataclass(frozen=True, slots=True)
class Place:
    """Where a measured server lives: its data folder, its workspace and a document in it."""

    home: Path
    workspace: Path

    def environment(self) -> dict[str, str]:
        """Give the environment of a server that lives here."""
        return {**os.environ, "MODELBLASTER_HOME": str(self.home)}

    def uri(self, name: str) -> str:
        """Give the URI of a document of the workspace."""
        return (self.workspace / name).as_uri()


def run(outcomes: int, lines: int, as_json: bool) -> Code:
    """Measure, print, and give 1 where a bar is not met."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise CommandError("the server is measured through /proc; run this on Linux", Code.DEVICE)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="modelblaster-bench-") as folder:
        place = Place(Path(folder) / "home", Path(folder) / "work")
        place.home.mkdir()
        place.workspace.mkdir()
        for figure in _measure(place, outcomes, lines):
            figures.append(figure)
            print(_line(figure), file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    return Code.DONE if all(f.met for f in figures) else Code.INPUT


def document(lines: int) -> str:
    """Write a document of this many lines, all of it kernels."""
    height = _BLOCK.count("\n")
    return "".join(_BLOCK.format(n=n) for n in range(lines // height))


def _measure(place: Place, outcomes: int, lines: int) -> Iterator[Figure]:
    yield from _start(place)
    yield from _editing(place, lines)
    yield from _cancel(place)
    yield from _knowledge(place, outcomes)


def _start(place: Place) -> Iterator[Figure]:
    """Start three servers; the median counts, the first also warms the disk."""
    costs, memories = [], []
    for _ in range(3):
        client = Client(place.environment())
        _initialize(client, place)
        costs.append(client.cpu())
        _open(client, place.uri("small.cl"), document(100))
        _lenses(client, place.uri("small.cl"))
        memories.append(client.private_bytes() / 1e6)
        client.close()
    yield Figure("start to initialize reply, CPU", statistics.median(costs), "s", 0.8)
    yield Figure("private memory with a document open", statistics.median(memories), "MB", 100)


def _editing(place: Place, lines: int) -> Iterator[Figure]:
    text = document(lines)
    uri = place.uri("long.cl")
    client = Client(place.environment())
    _initialize(client, place)
    before = client.cpu()
    _open(client, uri, text)
    count = len(_lenses(client, uri))
    first = client.cpu() - before
    yield Figure(f"{lines} lines, first lenses, CPU", first * 1e3, "ms", 120, f"{count} lenses")
    middle = text.index("sum +=", len(text) // 2)
    whole = _edits(client, uri, text, middle, "sum += 1.0f; ", first_version=2)
    yield Figure("after an edit, CPU p50", statistics.median(whole) * 1e3, "ms", 5, f"{EDITS} edits")
    broken = _edits(client, uri, text, middle, "sum += ((; ", first_version=2 + EDITS)
    yield Figure(
        "after an edit, syntax error in the file, CPU p50", statistics.median(broken) * 1e3, "ms", 12
    )
    client.close()


def _edits(client: Client, uri: str, text: str, at: int, inserted: str, first_version: int) -> list[float]:
    """Change the document again and again, and give the server's CPU time for each change and its lenses."""
    costs = []
    for number in range(EDITS):
        changed = text[:at] + inserted + " " * (number % 5) + text[at:]
        change = {"textDocument": {"uri": uri, "version": first_version + number}}
        before = client.cpu()
        client.notify("textDocument/didChange", {**change, "contentChanges": [{"text": changed}]})
        _lenses(client, uri)
        costs.append(client.cpu() - before)
    return costs


def _cancel(place: Place) -> Iterator[Figure]:
    """Start a job, cancel it, and wait until none of its processes is left."""
    client = Client(place.environment())
    _initialize(client, place)
    uri = place.uri("job.cl")
    comment = "// mb: global=(n,) n=1048576 by=1.5 src=f32[n] dst=out f32[n]\n"
    text = comment + document(_BLOCK.count("\n"))
    (place.workspace / "job.cl").write_text(text)
    _open(client, uri, text)
    _execute(client, uri, ("modelblaster.trust", "modelblaster.optimize"))
    started = _await_workers(client)
    before = time.monotonic()
    _execute(client, uri, ("modelblaster.cancel",))
    while any(processes.alive(pid, born) for pid, born in started):
        time.sleep(0.002)
        if time.monotonic() - before > CANCEL_WAIT_SECONDS:
            break
    took = time.monotonic() - before
    client.close()
    yield Figure("cancel to dead processes", took * 1e3, "ms", 500, f"{len(started)} processes")


def _await_workers(client: Client) -> list[tuple[int, str]]:
    """Wait until a job runs with at least one worker; give ids and births of its processes."""
    deadline = time.monotonic() + CANCEL_WAIT_SECONDS
    while time.monotonic() < deadline:
        found = [pid for pid, _ in processes.descendants(client.pid)]
        if len(found) > 1:
            return [(pid, processes.birth(pid)) for pid in found]
        time.sleep(0.05)
    raise CommandError("the job started no worker; run: modelblaster doctor", Code.DEVICE)


def _knowledge(place: Place, outcomes: int) -> Iterator[Figure]:
    from mb_lsp import bench_kb

    uri = place.uri("small.cl")
    text = document(100)
    kernels = registry.load("opencl").find_kernels(text, "opencl")
    rate = bench_kb.populate(place.home / "knowledge", outcomes, kernels=kernels)
    base = bench_kb.measure(place.home / "knowledge", kernels=kernels)
    size = f"{base.outcomes} outcomes of {base.kernels} kernels, {base.file_mb:.0f} MB, added at {rate:.0f}/s"
    yield Figure("knowledge base, cold open, CPU", base.open_ms, "ms", 10, size)
    yield Figure(
        "hover, the knowledge base's part, CPU p99", base.hover_p99 / 1e3, "ms", 0.25, "asked before"
    )
    first = base.cold_hover_p99 / 1e3
    yield Figure("hover, the same for the first time, CPU p99", first, "ms", None, "pages on the disk")
    client = Client(place.environment())
    _initialize(client, place)
    _open(client, uri, text)
    _settle(client)
    firsts, _ = zip(*(_hover(client, uri, n) for n in range(len(kernels))), strict=True)
    _settle(client)
    costs, rounds = zip(*(_hover(client, uri, n % len(kernels)) for n in range(HOVERS)), strict=True)
    client.close()
    known = f"{len(kernels)} kernels, all in the knowledge base"
    yield Figure("first hover of a kernel, server CPU, largest", max(firsts) * 1e3, "ms", None, known)
    yield Figure("hover, server CPU p50", statistics.median(costs) * 1e3, "ms", 1, f"{HOVERS} hovers")
    yield Figure("hover, round trip p50", statistics.median(rounds) * 1e3, "ms")


def _hover(client: Client, uri: str, number: int) -> tuple[float, float]:
    """Hover one of the document's kernels; give the server's CPU time and the round trip, in seconds.

    Raises:
        CommandError: The server shows nothing of its past.
    """
    position = {"line": number * _BLOCK.count("\n"), "character": 15}
    before, clock = client.cpu(), time.monotonic()
    shown = client.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})
    took = time.monotonic() - clock
    spent = client.cpu() - before
    if "outcome" not in str(shown):
        raise CommandError(f"hovering kernel {number} shows nothing of its past: {shown}", Code.INTERNAL)
    return spent, took


def _settle(client: Client) -> None:
    """Wait until the server has done what it does in the background."""
    deadline = time.monotonic() + SETTLE_SECONDS
    before = -1.0
    while time.monotonic() < deadline and client.cpu() - before > 0.001:
        before = client.cpu()
        time.sleep(0.2)


def _initialize(client: Client, place: Place) -> None:
    folder = {"uri": place.workspace.as_uri(), "name": "work"}
    capabilities = {
        "window": {"workDoneProgress": True},
        "general": {"positionEncodings": ["utf-8", "utf-16"]},
    }
    client.request(
        "initialize",
        {
            "processId": os.getpid(),
            "rootUri": folder["uri"],
            "workspaceFolders": [folder],
            "capabilities": capabilities,
        },
    )
    client.notify("initialized", {})


def _open(client: Client, uri: str, text: str) -> None:
    item = {"uri": uri, "languageId": "opencl", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": item})


def _lenses(client: Client, uri: str) -> list[Json]:
    found: list[Json] = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return found


def _execute(client: Client, uri: str, commands: tuple[str, ...]) -> None:
    """Run the first offered code action whose command is one of these."""
    at = {"line": 2, "character": 0}
    context: dict[str, list[Json]] = {"diagnostics": []}
    params = {"textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": context}
    for action in client.request("textDocument/codeAction", params):
        command = action["command"] if isinstance(action.get("command"), dict) else action
        if command.get("command") in commands:
            arguments = {"command": command["command"], "arguments": command.get("arguments", [])}
            client.request("workspace/executeCommand", arguments)
            return
    raise CommandError(f"the server offers none of {', '.join(commands)}", Code.INTERNAL)


def _line(figure: Figure) -> str:
    bar = (
        "" if figure.bar is None else f"bar {figure.bar:g} {figure.unit} {'met' if figure.met else 'MISSED'}"
    )
    return f"{figure.name:50} {figure.value:9.3f} {figure.unit:3} {bar:22} {figure.note}"
