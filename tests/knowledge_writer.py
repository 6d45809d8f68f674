"""Another process on a knowledge base, for tests: ``knowledge_writer.py MODE FOLDER [FIRST [COUNT]]``.

``write`` records outcomes and prints the number of each once it is acknowledged; ``hold`` takes the right to
write and an open transaction, says so, and keeps both; ``grow`` writes until the map has grown.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import made_outcomes as made

from mb_kb.knowledge import KnowledgeBase


def write(base: KnowledgeBase, first: int, count: int) -> None:
    for n in range(first, first + count):
        base.record(
            made.outcome(2.0 + n % 7, number=n, kernel=f"kernel {n % 5}"), made.VECTORS["matmul"], "x" * 500
        )
        print(n, flush=True)


def hold(base: KnowledgeBase) -> None:
    with base.store.writing(), base.store.environment.begin(write=True):
        print("held", flush=True)
        time.sleep(60)


def grow(base: KnowledgeBase) -> None:
    before = base.store.environment.info()["map_size"]
    n = 0
    while base.store.environment.info()["map_size"] == before:
        base.record(made.outcome(number=n, kernel=f"kernel {n}"))
        n += 1


def main(mode: str, folder: str, first: str = "0", count: str = "100000") -> None:
    base = KnowledgeBase(Path(folder), map_bytes=1 << 17)
    if mode == "write":
        write(base, int(first), int(count))
    elif mode == "hold":
        hold(base)
    else:
        grow(base)
    base.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
