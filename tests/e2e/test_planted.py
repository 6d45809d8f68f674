"""Wrong variants planted through the server: all refused, each with its reason, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import planted
import pytest
from e2e.raw import served

from mb_agent import events
from mb_lsp import processes

DATA = Path(__file__).parents[1] / "data" / "planted"
WRONG = {"neighbours": planted.WRONG_NEIGHBOURS, "row_total": planted.WRONG_ROW_TOTAL}

# The originals waste time, so that each wrong variant could win and has to face every check.
WASTE = "volatile int waste = 0; for (int w = 0; w < 300; ++w) waste = w;"
SLOWER = {
    "neighbours": ("    float left", f"    {WASTE}\n    float left"),
    "row_total": ("    if (", f"    {WASTE}\n    if ("),
}

pytestmark = [pytest.mark.needs("pocl", "oclgrind"), pytest.mark.timeout(300)]


@pytest.mark.parametrize("kernel", sorted(WRONG))
def test_no_planted_variant_is_offered_and_the_server_lives_on(tmp_path: Path, kernel: str) -> None:
    path = tmp_path / "work" / f"{kernel}.cl"
    path.parent.mkdir()
    path.write_text((DATA / path.name).read_text().replace(*SLOWER[kernel]))
    with served("planted_job.py") as server:
        server.begin(tmp_path, device="pocl", budgetSeconds=120)
        uri = server.open(path, path.read_text())
        job = server.run("trust", uri=uri, kernel=kernel)["job"]
        server.said(f"no faster variant of `{kernel}`")
        log = events.read_log(tmp_path / "data" / "jobs" / job)
        refused = {
            e.variant.chain[0].parameters[0]: e.outcome.verdict for e in log if isinstance(e, events.Tried)
        }
        assert set(refused) == set(WRONG[kernel])
        assert {wrong for wrong, verdict in refused.items() if not verdict.failure} == set()
        assert all(v.counter_example or any(c.passed is False for c in v.checks) for v in refused.values())
        assert processes.descendants(server.process.pid) == []
        (lens,) = server.ask("textDocument/codeLens", {"textDocument": {"uri": uri}})
        title = server.ask("codeLens/resolve", lens)["command"]["title"]
        assert title == f"Optimize | no faster variant in {len(WRONG[kernel])} tried"
        assert server.leave() == 0
