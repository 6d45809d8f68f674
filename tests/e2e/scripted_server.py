"""The real server over stdio, with a job of these tests, the scripted one or another, for the search."""

from __future__ import annotations

import sys
from pathlib import Path

from mb_lsp import server

JOB = """
import runpy, sys
sys.path.insert(0, {tests!r})
sys.argv = sys.argv[1:]
runpy.run_path({job!r}, run_name="__main__")
"""


def main() -> None:
    here = Path(__file__).parent
    name = sys.argv[1] if len(sys.argv) > 1 else "scripted_job.py"
    job = JOB.format(tests=str(here.parent), job=str(here / name))
    server.serve(server.make([sys.executable, "-P", "-c", job, "job"]))


if __name__ == "__main__":
    main()
