"""One job at a time on a device, across windows and processes.

A job holds the device from its first run to its last: builds and checks beside a measurement would disturb
it. Whoever waits holds a ticket, a locked file whose name gives its place; the system drops the lock of a
process that dies, so a ticket nobody holds is swept away by the next to look.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from mb_agent.errors import JobRefused

WAIT_SECONDS = 1800.0
POLL_SECONDS = 0.1


class DeviceBusy(JobRefused):
    """Other jobs held the device for longer than we wait."""


@contextmanager
def hold(
    folder: Path,
    device: str,
    waiting: Callable[[int], None],
    limit: float = WAIT_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold a device.

    Args:
        folder: Where the locks lie: one folder a user.
        device: The device's key.
        waiting: Told how many jobs are before us, whenever that changes.
        limit: Seconds to wait.

    Raises:
        DeviceBusy: The device was not free in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]", "_", device)
    ticket = folder / f"{name}.{time.time_ns():020d}.{os.getpid()}.ticket"
    main = filelock.FileLock(folder / f"{name}.lock")
    mine = filelock.FileLock(ticket)
    mine.acquire()
    try:
        _wait(folder, name, ticket, main, waiting, limit, sleep)
        try:
            yield
        finally:
            main.release()
    finally:
        mine.release()
        ticket.unlink(missing_ok=True)


def _wait(
    folder: Path,
    name: str,
    ticket: Path,
    main: filelock.BaseFileLock,
    waiting: Callable[[int], None],
    limit: float,
    sleep: Callable[[float], None],
) -> None:
    end = time.monotonic() + limit
    said = -1
    while True:
        before = _before(folder, name, ticket)
        if before == 0:
            with contextlib.suppress(filelock.Timeout):
                main.acquire(timeout=0)
                return
            before = 1  # whoever holds the device has its ticket gone already, or took a later one
        if before != said:
            said = before
            waiting(before)
        if time.monotonic() > end:
            raise DeviceBusy(
                f"{before} other jobs have kept this device busy for {limit:.0f} s; try again later"
            )
        sleep(POLL_SECONDS)


def _before(folder: Path, name: str, ticket: Path) -> int:
    """Count the live tickets before ours, and sweep away the dead ones."""
    count = 0
    for other in sorted(folder.glob(f"{name}.*.ticket")):
        if other.name >= ticket.name:
            break
        probe = filelock.FileLock(other)
        try:
            probe.acquire(timeout=0)
        except filelock.Timeout:
            count += 1
            continue
        except OSError:
            continue
        other.unlink(missing_ok=True)
        probe.release()
    return count
