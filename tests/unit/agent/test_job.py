"""The job process, end to end on a real device."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mb_agent.events import (
    Budget,
    Failed,
    Finished,
    Progress,
    Request,
    Started,
    Tried,
    decode,
    read_log,
    write_request,
)
from mb_targets import registry
from mb_targets.outcome import Level

pytestmark = [pytest.mark.needs("pocl"), pytest.mark.timeout(180)]

TOTALS = """// mb: global=(rows,) rows=512 cols=512 x=f32[rows*cols] out=out f32[rows]
__kernel void totals(__global const float *x, __global float *out, int rows, int cols)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int i = 0; i < cols; i++)
        sum += x[row * cols + i];
    out[row] = sum;
}
"""


def request_for(folder, text, **changes):
    kernel = registry.load("opencl").find_kernels(text, "opencl")[0]
    path = folder.parent / "kernel.cl"
    path.write_text(text)
    fields = {"budget": Budget(10.0), "device": "pocl", "seed": 7} | changes
    write_request(folder, Request(folder.name, str(path), text, kernel, **fields))


def start(folder):
    env = os.environ | {"MODELBLASTER_HOME": str(folder.parent / "home")}
    command = [sys.executable, "-m", "mb_agent.job", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


def finish(folder):
    process = start(folder)
    out, err = process.communicate(timeout=150)
    return process.returncode, [decode(line) for line in out.splitlines()], err.decode()


def failure(folder, text, **changes):
    request_for(folder, text, **changes)
    code, events, err = finish(folder)
    assert (code, err) == (1, "")
    return events[-1]


def group_is_gone(pid):
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


def children(pid):
    """List the processes whose parent is this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def wait_for(process, kind):
    for line in process.stdout:
        if isinstance(event := decode(line), kind):
            return event
    pytest.fail(f"the job ended before {kind.__name__}")


def gone(pids, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs") / "job"
    request_for(folder, TOTALS, budget=Budget(20.0), knowledge=str(folder.parent / "knowledge"))
    code, events, err = finish(folder)
    assert (code, err) == (0, "")
    return folder, events


def test_a_job_starts_tries_and_finishes(finished):
    _, events = finished
    kinds = [type(e) for e in events]
    assert kinds.index(Started) < kinds.index(Tried) < kinds.index(Finished) == len(kinds) - 1


def test_a_naive_row_sum_gets_a_verified_faster_variant(finished):
    offer = finished[1][-1].offers[0]
    assert offer.verdict.level >= Level.SANITIZED
    assert offer.measurement.speedup.low > 1.5


def test_the_diff_of_an_offer_applies_to_the_file(finished, tmp_path):
    _, events = finished
    path = tmp_path / "kernel.cl"
    path.write_text(TOTALS)
    subprocess.run(
        ["patch", "-s", str(path)], input=events[-1].offers[0].diff.encode(), check=True, timeout=20
    )
    assert "void totals(" in path.read_text()
    assert path.read_text() != TOTALS


def test_the_evidence_of_an_offer_holds_raw_samples_and_seeds(finished):
    from mb_agent.evidence import read

    evidence = read(Path(finished[1][-1].offers[0].evidence))
    assert len(evidence.cpu_ns) == evidence.measurement.samples
    assert evidence.final_seed != evidence.seed == 7


def test_the_log_on_disk_is_what_was_written_to_standard_output(finished):
    folder, events = finished
    assert read_log(folder) == events


def test_outcomes_reach_the_knowledge_base(finished):
    from mb_kb.knowledge import KnowledgeBase

    folder, events = finished
    base = KnowledgeBase(folder.parent / "knowledge")
    kept = {o.provenance.variant for o in base.outcomes()}
    base.close()
    assert kept == {e.variant.hash for e in events if isinstance(e, Tried)}


def test_nothing_is_measured_that_never_compared_equal(finished):
    tried = [e.outcome for e in finished[1] if isinstance(e, Tried)]
    assert all(o.verdict.smoke for o in tried if o.step or o.total)


def test_a_job_that_has_ended_is_not_run_again(finished):
    code, events, _ = finish(finished[0])
    assert code == 1
    assert "ended already" in events[-1].message


def test_terminating_a_job_ends_its_workers(tmp_path):
    folder = tmp_path / "job"
    request_for(folder, TOTALS, budget=Budget(60.0))
    process = start(folder)
    wait_for(process, Tried)
    workers = children(process.pid)
    assert workers
    process.send_signal(signal.SIGTERM)
    assert gone(workers, 5.0)
    process.communicate(timeout=10)
    assert process.returncode == 128 + signal.SIGTERM


def test_killing_a_job_outright_leaves_no_worker(tmp_path):
    folder = tmp_path / "job"
    request_for(folder, TOTALS, budget=Budget(60.0))
    process = start(folder)
    wait_for(process, Tried)
    workers = children(process.pid)
    process.kill()
    process.communicate(timeout=10)
    assert gone(workers, 5.0)


def test_a_killed_job_goes_on_where_it_was(tmp_path):
    folder = tmp_path / "job"
    request_for(folder, TOTALS, budget=Budget(25.0))
    process = start(folder)
    first = wait_for(process, Tried)
    process.kill()
    process.communicate(timeout=10)
    code, events, _ = finish(folder)
    again = [e for e in events if isinstance(e, Tried) and not e.outcome.verdict.full]
    assert code == 0
    assert first.variant.hash not in {e.variant.hash for e in again}
    assert events[-1].tried > len(again)


def test_a_job_whose_reader_is_gone_ends(tmp_path):
    folder = tmp_path / "job"
    request_for(folder, TOTALS, budget=Budget(60.0))
    process = start(folder)
    wait_for(process, Started)
    process.stdout.close()
    assert process.wait(timeout=60) != 0
    process.stderr.close()


def test_the_count_of_candidates_is_a_limit(tmp_path):
    folder = tmp_path / "job"
    request_for(folder, TOTALS, budget=Budget(60.0, candidates=2))
    _, events, _ = finish(folder)
    assert events[-1].tried <= 3  # the best may be tried once more in the form that keeps the launch


def test_a_kernel_that_does_not_compile_is_named_with_its_line(tmp_path):
    failed = failure(tmp_path / "job", TOTALS.replace("float sum", "flaot sum"))
    assert isinstance(failed, Failed)
    assert failed.message.startswith("totals does not compile: line 7")
    assert failed.cause == "input"


def test_a_kernel_that_reads_past_a_buffer_is_refused(tmp_path):
    failed = failure(tmp_path / "job", TOTALS.replace("i < cols", "i <= cols"))
    said = "your own kernel, not a variant of it, touched memory outside a buffer: x[262144]"
    assert said in failed.message
    assert failed.message.endswith("at rows=512 cols=512")


def test_a_kernel_that_does_not_end_is_given_up_soon_after_a_small_budget(tmp_path):
    endless = TOTALS.replace("out[row] = sum", "volatile int v = 1; while (v); out[row] = sum")
    failed = failure(tmp_path / "job", endless, budget=Budget(0.5))
    assert "not done after 10.5 s" in failed.message
    assert failed.cause == "input"


def test_a_budget_that_preparing_has_used_up_says_that_nothing_was_tried(tmp_path):
    folder = tmp_path / "job"
    request_for(folder, TOTALS, budget=Budget(0.01))
    _, events, _ = finish(folder)
    assert events[-1].reason.startswith("no candidate was tried in 0.01 s: give a larger budget")


def test_a_kernel_that_depends_on_what_its_output_held_is_refused(tmp_path):
    failed = failure(tmp_path / "job", TOTALS.replace("out[row] = sum", "out[row] += sum"))
    assert "reads out before it writes it" in failed.message


def test_a_device_that_is_not_there_is_named(tmp_path):
    failed = failure(tmp_path / "job", TOTALS, device="no such device")
    assert failed.cause == "device"
    assert "no such device" in failed.message


def test_an_unknown_policy_is_refused(tmp_path):
    assert "there is no policy 'magic'" in failure(tmp_path / "job", TOTALS, policy="magic").message


def test_a_knowledge_base_that_cannot_be_opened_costs_only_the_memory(tmp_path):
    folder = tmp_path / "job"
    (tmp_path / "file").write_text("no folder")
    request_for(folder, TOTALS, knowledge=str(tmp_path / "file"), budget=Budget(8.0, candidates=1))
    code, events, _ = finish(folder)
    assert code == 0
    place = tmp_path / "file"
    said = f"the knowledge base at {place} could not be used (File exists), so nothing was looked up"
    assert said in events[-1].reason


def test_a_damaged_knowledge_base_that_was_set_aside_is_named(tmp_path):
    folder = tmp_path / "job"
    knowledge = tmp_path / "knowledge"
    knowledge.mkdir()
    (knowledge / "outcomes.lmdb").write_bytes(b"damaged" * 4096)
    request_for(folder, TOTALS, knowledge=str(knowledge), budget=Budget(8.0, candidates=1))
    _, events, _ = finish(folder)
    assert "is damaged" in events[-1].reason


def test_a_seed_below_zero_is_refused(tmp_path):
    failed = failure(tmp_path / "job", TOTALS, seed=-3)
    assert (failed.cause, "the seed is -3" in failed.message) == ("input", True)


def test_a_folder_that_takes_no_more_is_the_users_to_mend(tmp_path):
    request_for(tmp_path / "job", TOTALS)
    command = f"ulimit -f 1; exec {sys.executable} -m mb_agent.job {tmp_path / 'job'}"
    (tmp_path / "job" / "events.jsonl").write_bytes(b"\n" * 1000)
    ended = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    failed = decode(ended.stdout.splitlines()[-1])
    assert failed.cause == "input"
    assert "cannot be written" in failed.message


def test_a_folder_without_a_request_is_said_so(tmp_path):
    code, events, err = finish(tmp_path)
    assert (code, err) == (1, "")
    assert "request.json" in events[-1].message


def test_progress_grows_and_stays_within_one(finished):
    shares = [e.share for e in finished[1] if isinstance(e, Progress)]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
