from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import made_events

from mb_agent import events
from mb_targets import registry

HEAVY = {"torch", "litellm", "pyopencl", "numpy", "clang"}

# What a server does from its start to a hover, a code action and an edit that changes the launch.
SERVING = """
import sys
from pathlib import Path
from mb_lsp import actions, annotate, edits, review, server, shelf
from mb_lsp.documents import Documents
from mb_lsp.launches import described
from mb_lsp.memory import Knowledge
from mb_lsp.standing import standing

folder = Path(sys.argv[1])
server.make()
documents = Documents()
path = folder / "k.cl"
document = documents.open(path.as_uri(), path, "opencl", 1, path.read_text())
(placed,) = document.kernels
kernel = placed.kernel
described(kernel, path)
(job,) = shelf.load(folder / "jobs")
stands = standing(kernel, [job])
assert stands.kind == "ready", stands
knowledge = Knowledge(folder / "knowledge", print)
knowledge.warm(kernel)
assert annotate.hover(kernel.name, stands, knowledge.of(kernel))
annotate.lens(stands, knowledge.of(kernel), True)
assert list(actions.listed(document.uri, kernel, stands, True))
made = review.edits(job, job.log.offers[0], document)
assert not isinstance(made, review.Refusal), made
assert edits.changes(documents, document, made)
print(*sys.modules)
"""


def test_the_server_imports_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "k.cl"
    text = f"{made_events.started().launch_comment} n%16\n{made_events.SOURCE}"
    path.write_text(text)
    (kernel,) = registry.load("opencl").find_kernels(text, "opencl")
    request = events.Request("job", str(path), text, kernel)
    job = tmp_path / "jobs" / "job"
    events.write_request(job, request)
    log = made_events.started(), made_events.finished(made_events.offer(2.31, changes_launch=True))
    (job / "events.jsonl").write_bytes(b"".join(map(events.encode, log)))
    (tmp_path / "knowledge").mkdir()
    command = [sys.executable, "-P", "-c", SERVING, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert HEAVY.isdisjoint(done.stdout.split())
