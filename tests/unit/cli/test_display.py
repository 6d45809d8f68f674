"""What is shown while a job runs."""

from __future__ import annotations

import io

import made_events as made
import pytest
from rich.console import Console

from mb_agent import events
from mb_lsp.display import LiveDisplay, PlainDisplay, open_display
from mb_targets.outcome import Speedup


def terminal() -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=100, highlight=False, _environ={"TERM": "xterm"}
    )


def test_a_pipe_gets_plain_lines() -> None:
    assert isinstance(open_display("k", 60.0, Console(file=io.StringIO())), PlainDisplay)


def test_a_terminal_gets_the_live_panel() -> None:
    assert isinstance(open_display("k", 60.0, terminal()), LiveDisplay)


def test_plain_lines_tell_the_device_and_each_new_best(capsys: pytest.CaptureFixture[str]) -> None:
    with open_display("k", 60.0, Console(file=io.StringIO())) as display:
        display.show(made.started())
        for best in (Speedup(2.0, 1.9, 2.1), Speedup(2.0, 1.9, 2.1), Speedup(3.0, 2.9, 3.1)):
            display.show(events.Progress(2.0, "measuring", 5, 0.5, best))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "k: started on A CPU (cpu-test-pocl)"
    assert [line.split("; ")[0] for line in lines[1:]] == [
        "k: best so far 2.00x [1.90-2.10]",
        "k: best so far 3.00x [2.90-3.10]",
    ]


def test_plain_lines_never_touch_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with open_display("k", 60.0, Console(file=io.StringIO())) as display:
        display.show(made.started())
    assert capsys.readouterr().out == ""


def test_the_panel_shows_what_was_tried_and_refused() -> None:
    console = terminal()
    with open_display("k", 60.0, console) as display:
        for event in (made.started(), made.tried("tile", None), made.tried("vector", 2.0)):
            display.show(event)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for part in ("2 tried, 1 refused", "refused: values", "cpu-test-pocl"):
        assert part in text
