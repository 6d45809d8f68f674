"""A job that follows a script instead of searching: it speaks the real job's events.

The kernel's text chooses the script: one that mentions ``slow`` runs until it is killed, ``wrong`` fails with
a question, ``crash`` dies, ``full`` can write no further
event; any other is given a made-up result, and one that mentions ``both`` a second one
that changes the launch.
"""

from __future__ import annotations

import dataclasses
import resource
import subprocess
import sys
import time
from pathlib import Path

import made_events

from mb_agent import events
from mb_targets.model import Variant


def main(folder: Path) -> None:
    request = events.read_request(folder)
    script = request.text
    say(folder, events.Queued(1.0, 1))
    if "crash" in script:
        raise SystemExit(3)
    if "wrong" in script:
        say(
            folder,
            events.Failed(1.0, "nothing says how large `y` is", "// mb: global=(?,) y=f32[?]", "input"),
        )
        return
    say(folder, made_events.started())
    if "full" in script:
        size = (folder / "events.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if "slow" in script:
        worker = [sys.executable, "-c", "import time; time.sleep(600)"]
        child = subprocess.Popen(worker, start_new_session=True)
        (folder / "worker.pid").write_text(str(child.pid))
        if "gain" in script:
            say(folder, tried(request))
        say(folder, events.Progress(1.0, "trying", 12, 0.4, made_events.measurement(1.42).speedup))
        time.sleep(600)
    for step in (1, 3, 2, 4):
        best = made_events.measurement(1.0 + step / 4).speedup
        say(folder, events.Progress(1.0, "trying", step, step / 4, best))
        time.sleep(0.15)
    offer = made_events.offer(2.31)
    evidence = str(folder / "evidence.json")
    offers = [events.Offer(variant(request), offer.verdict, offer.measurement, False, offer.diff, evidence)]
    if "both" in script:
        launch = made_events.variant("tile", changes_launch=True).launch
        changed = dataclasses.replace(variant(request), launch=launch)
        faster = made_events.measurement(5.5)
        offers.insert(0, events.Offer(changed, offer.verdict, faster, True, offer.diff, evidence))
    say(folder, made_events.finished(*offers))


def variant(request: events.Request) -> Variant:
    source = request.kernel.source.replace("* 2.0f", "+ y[i]")
    return dataclasses.replace(made_events.variant("double"), source=source, name=request.kernel.name)


def tried(request: events.Request) -> events.Tried:
    event = made_events.tried("double", 1.42)
    return events.Tried(event.time, event.outcome, variant(request))


def say(folder: Path, event: events.Event) -> None:
    line = events.encode(event)
    with (folder / "events.jsonl").open("ab") as log:
        log.write(line)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
