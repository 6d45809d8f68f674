"""Several processes on one base: killed, stopped, growing, all at once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import made_outcomes as made
import pytest

from mb_kb.errors import KnowledgeError
from mb_kb.knowledge import KnowledgeBase

SCRIPT = Path(__file__).parents[2] / "knowledge_writer.py"


def start(mode: str, folder: Path, *more: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), mode, str(folder), *map(str, more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def lines(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.read().split()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture
def holder(base: KnowledgeBase) -> Iterator[subprocess.Popen[str]]:
    """A process that was stopped while it held the right to write and an open transaction."""
    process = start("hold", base.folder)
    first_line(process)
    process.send_signal(signal.SIGSTOP)
    yield process
    end(process)


def numbers(base: KnowledgeBase) -> set[int]:
    return {int(o.provenance.created - 1e9) for o in base.outcomes()}


def test_nothing_acknowledged_is_lost_when_writers_are_killed(base: KnowledgeBase) -> None:
    draw = random.Random(4)
    acknowledged: set[int] = set()
    for turn in range(6):
        writers = [start("write", base.folder, (2 * turn + n) * 100_000) for n in range(2)]
        acknowledged |= {int(first_line(w)) for w in writers}
        time.sleep(draw.uniform(0, 0.15))
        for w in writers:
            w.send_signal(signal.SIGKILL)
        for w in writers:
            acknowledged |= {int(line) for line in lines(w)}
            end(w)
    base.record(made.outcome(number=9_999_999))  # takes in what was spooled
    assert acknowledged <= numbers(base)
    assert base.verify().problems == ()


def test_a_stopped_writer_delays_nobody_for_long(base: KnowledgeBase, holder: subprocess.Popen[str]) -> None:
    assert base.record(made.outcome()) is False
    assert base.stats().waiting == 1


def test_readers_go_on_beside_a_stopped_writer(base: KnowledgeBase, holder: subprocess.Popen[str]) -> None:
    assert base.actions(made.STATE) == []


def test_a_base_opens_beside_a_stopped_writer(tmp_path: Path) -> None:
    process = start("hold", tmp_path)
    first_line(process)
    process.send_signal(signal.SIGSTOP)
    base = KnowledgeBase(tmp_path)
    assert base.stats().outcomes == 0
    base.close()
    end(process)


def test_what_waited_for_a_stopped_writer_is_taken_in_by_the_next(
    base: KnowledgeBase, holder: subprocess.Popen[str]
) -> None:
    base.record(made.outcome(number=1))
    end(holder)
    assert base.record(made.outcome(number=2)) is True
    assert (numbers(base), base.stats().waiting) == ({1, 2}, 0)


def test_a_writer_killed_inside_a_transaction_blocks_nobody(base: KnowledgeBase) -> None:
    process = start("hold", base.folder)
    first_line(process)
    end(process)
    assert base.record(made.outcome()) is True


def test_three_writers_at_once_lose_nothing(base: KnowledgeBase) -> None:
    writers = [start("write", base.folder, first, 30) for first in (0, 1000, 2000)]
    for w in writers:
        w.communicate()
    base.record(made.outcome(number=9999))
    assert len(numbers(base)) == 91
    assert base.verify().problems == ()


def test_growth_by_another_process_is_followed(base: KnowledgeBase) -> None:
    base.record(made.outcome(number=5000))
    process = start("grow", base.folder)
    process.communicate()
    assert process.returncode == 0
    assert base.stats().outcomes > 1
    base.record(made.outcome(number=5001))
    assert base.verify().problems == ()


def test_threads_of_one_process_share_a_base(base: KnowledgeBase) -> None:
    def work(first: int) -> list[int]:
        seen = []
        for n in range(first, first + 15):
            base.record(made.outcome(number=n, kernel=f"kernel {n}"), made.VECTORS["matmul"])
            seen.append(len(base.similar(made.VECTORS["matmul"], 100)))
        return seen

    with ThreadPoolExecutor(4) as pool:
        seen = [s for one in pool.map(work, (0, 100, 200, 300)) for s in one]
    assert max(seen) == len(base.similar(made.VECTORS["matmul"], 100)) == 60
    assert base.verify().problems == ()


def test_a_forked_child_is_told_to_open_its_own(base: KnowledgeBase) -> None:
    base.record(made.outcome())
    child = os.fork()
    if child == 0:
        try:
            base.stats()
        except KnowledgeError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
