import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from small_kernels import SOURCES, launch, variant

from mb_agent.errors import AgentError, TimedOut, WorkerDied
from mb_agent.worker import WorkerProcess, share
from mb_targets.errors import BuildError, RunError, TargetUnavailable
from mb_targets.model import Variant

RUNTIMES = [pytest.param(r, marks=pytest.mark.needs(r)) for r in ("pocl", "intel")]
POISON = 0x7FA5A5A5


@pytest.fixture(scope="module", params=RUNTIMES)
def shared_worker(request):
    with WorkerProcess("opencl", request.param) as process:
        yield process


@pytest.fixture
def worker(shared_worker):
    if shared_worker.pid is None:
        shared_worker.restart()
    return shared_worker


def floats(n):
    return np.arange(1, n + 1, dtype=np.float32)


def inputs(n, **others):
    return share({"a": floats(n), "o": np.full(n, POISON, np.uint32), **others})


def build(worker, source, *options):
    return worker.build(source if isinstance(source, Variant) else Variant(source, "k"), options, Path())


def run(worker, source, n, local=None, **limits):
    return worker.run(build(worker, source), launch(n, local), inputs(n), **limits)


def gone(pid):
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("n", [1, 3, 7, 37, 1000, 4096, 5001])
def test_outputs_come_back_exactly_at_any_size(worker, n):
    outputs = run(worker, variant("good"), n).outputs
    assert np.array_equal(np.frombuffer(outputs["o"], np.float32), floats(n) * 2)


def test_poison_stays_where_nothing_was_written(worker):
    handle = build(worker, variant("good"))
    outputs = worker.run(handle, launch(64, None, scalars={"n": 40}), inputs(64)).outputs
    assert (np.frombuffer(outputs["o"], np.uint32)[40:] == POISON).all()


@pytest.mark.parametrize("n", [1, 5, 37, 1024])
@pytest.mark.parametrize("name", ["oob_read", "oob_write"])
def test_one_element_past_the_end_ends_the_worker(worker, name, n):
    with pytest.raises(WorkerDied, match="touched memory outside a buffer: ") as died:
        run(worker, variant(name), n)
    buffer = "a" if name == "oob_read" else "o"
    assert f"{buffer}[{n}], which has {n} elements (SIGSEGV)" in str(died.value)
    assert died.value.touched_memory
    assert worker.pid is None


def test_one_byte_past_the_end_ends_the_worker(worker):
    source = "__kernel void k(__global const uchar *a, __global uchar *o) { o[0] = a[3]; }"
    spec = launch(
        1, None, order=("a", "o"), dtypes={"a": "u8", "o": "u8"}, scalars={}, buffers={"a": 3, "o": 1}
    )
    with pytest.raises(WorkerDied):
        worker.run(build(worker, source), spec, share({"a": b"abc", "o": b"x"}))


def test_write_before_the_start_is_named(worker):
    with pytest.raises(RunError, match="before the start of o"):
        run(worker, variant("under_write"), 37)


def test_crash_is_told_by_later_calls_until_a_restart(worker):
    with pytest.raises(WorkerDied):
        run(worker, variant("oob_read"), 37)
    with pytest.raises(WorkerDied, match="touched memory"):
        build(worker, variant("good"))
    worker.restart()
    assert run(worker, variant("good"), 4).changed_inputs == ()


def test_handle_of_an_ended_process_is_refused(worker):
    handle = build(worker, variant("good"))
    worker.restart()
    with pytest.raises(AgentError, match="built in a process"):
        worker.run(handle, launch(4, None), inputs(4))


def test_endless_loop_is_killed_at_its_limit_with_its_group(worker):
    handle = build(worker, variant("endless"))
    pid = worker.pid
    with pytest.raises(TimedOut, match="not done after 1 s"):
        worker.run(handle, launch(16), inputs(16), limit=1.0)
    assert gone(pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)


def test_process_that_timed_out_says_so_to_later_calls(worker):
    handle = build(worker, variant("endless"))
    with pytest.raises(TimedOut):
        worker.run(handle, launch(16), inputs(16), limit=0.5)
    with pytest.raises(TimedOut, match=r"not done after 0\.5 s"):
        worker.device()


def test_killed_from_outside_is_told_as_such(worker):
    worker.device()
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL") as died:
        run(worker, variant("good"), 4)
    assert not died.value.touched_memory


def test_another_thread_can_kill_a_worker_in_the_middle_of_a_call(worker):
    handle = build(worker, variant("endless"))
    timer = threading.Timer(0.3, worker.kill)
    timer.start()
    with pytest.raises(AgentError):
        worker.run(handle, launch(16), inputs(16), limit=60.0)
    timer.join()


def test_written_input_is_reported(worker):
    assert run(worker, variant("writes_input"), 64).changed_inputs == ("a",)


def test_empty_launch_leaves_outputs_as_they_were(worker):
    result = worker.run(build(worker, variant("good")), launch(8, None, global_size=(0,)), inputs(8))
    assert (np.frombuffer(result.outputs["o"], np.uint32) == POISON).all()


def test_empty_buffers_are_accepted(worker):
    assert run(worker, variant("good"), 0).outputs == {"o": b""}


def test_scalars_are_passed_with_their_type(worker):
    names = {"b": "u8", "s": "i16", "l": "i64", "d": "f64", "v": "f32"}
    source = (
        "__kernel void k(__global double *o, uchar b, short s, long l, double d, float4 v) {"
        " o[0] = b; o[1] = s; o[2] = l; o[3] = d; o[4] = v.x + v.w; }"
    )
    spec = launch(
        1,
        None,
        order=("o", *names),
        dtypes={"o": "f64", **names},
        lanes={"v": 4},
        scalars={"b": 200, "s": -5, "l": 1 << 40, "d": 0.1, "v": 1.5},
        buffers={"o": 40},
    )
    outputs = worker.run(build(worker, source), spec, share({"o": bytes(40)})).outputs
    assert np.frombuffer(outputs["o"], np.float64).tolist() == [200, -5, 1 << 40, 0.1, 3.0]


def test_scalar_that_does_not_fit_is_a_run_error(worker):
    with pytest.raises(RunError, match="does not fit"):
        worker.run(build(worker, variant("good")), launch(4, None, scalars={"n": 1 << 40}), inputs(4))


def test_local_memory_arguments_are_reserved(worker):
    source = (
        "__kernel void k(__global const float *a, __global float *o, __local float *t) {"
        " int l = get_local_id(0); t[l] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);"
        " o[get_global_id(0)] = t[15 - l]; }"
    )
    spec = launch(32, order=("a", "o", "t"), local_bytes={"t": 64}, scalars={})
    outputs = worker.run(build(worker, source), spec, inputs(32)).outputs
    assert np.frombuffer(outputs["o"], np.float32)[:16].tolist() == floats(16)[::-1].tolist()


def test_vector_pointers_get_aligned_buffers_at_odd_sizes(worker):
    source = (
        "__kernel void k(__global const float *a, __global float *o, int n) {"
        " for (int i = 0; i < n / 16; i++) ((__global float16 *)o)[i] = ((__global const float16 *)a)[i];"
        " for (int i = n / 16 * 16; i < n; i++) o[i] = a[i]; }"
    )
    spec = launch(37, None, global_size=(1,))
    outputs = worker.run(build(worker, source), spec, inputs(37)).outputs
    assert np.array_equal(np.frombuffer(outputs["o"], np.float32), floats(37))


def test_build_error_names_the_line(worker):
    with pytest.raises(BuildError, match=r"line 3, column \d+: use of undeclared identifier 'm'"):
        build(worker, SOURCES["good"].replace("i < n", "i < m"))


def test_missing_kernel_is_a_build_error(worker):
    with pytest.raises(BuildError, match="no kernel named q"):
        build(worker, Variant(SOURCES["good"], "q"))


def test_options_and_the_folder_reach_the_compiler(worker, tmp_path):
    (tmp_path / "more.h").write_text("#define THREE 3\n")
    source = '#include "more.h"\n__kernel void k(__global int *o) { o[0] = THREE + FOUR + FIVE; }'
    changed = Variant(source, "k", options=("-DFIVE=5",))
    handle = worker.build(changed, ["-DFOUR=4"], tmp_path)
    spec = launch(1, None, order=("o",), dtypes={"o": "i32"}, scalars={}, buffers={"o": 4})
    assert worker.run(handle, spec, share({"o": bytes(4)})).outputs["o"] == (12).to_bytes(4, "little")


def test_refused_work_group_size_is_a_run_error_and_no_crash(worker):
    with pytest.raises(RunError, match="work-group size"):
        run(worker, variant("good"), 1 << 20, local=1 << 20)
    assert worker.pid is not None


def test_wrong_number_of_arguments_is_a_run_error(worker):
    with pytest.raises(RunError, match="3 parameters and the launch 2"):
        worker.run(build(worker, variant("good")), launch(4, None, order=("a", "o")), inputs(4))


def test_timed_launches_move_the_cpu_clock_and_the_events(worker):
    handle = build(worker, variant("good"))
    worker.prepare(handle, launch(1 << 18, None), inputs(1 << 18), 5)
    spent, sample = worker.time_cpu(handle)
    assert spent > 0
    assert sample.event_ns > 0
    assert sample.launches == 5


def test_each_timed_launch_finds_the_initial_bytes(worker):
    source = "__kernel void k(__global int *o) { volatile int seen = o[0]; while (seen != 7) { } o[0] = 8; }"
    spec = launch(1, None, order=("o",), dtypes={"o": "i32"}, scalars={}, buffers={"o": 4})
    handle = build(worker, source)
    given = share({"o": (7).to_bytes(4, "little")})
    for launches in (1, 20, 5):
        worker.prepare(handle, spec, given, launches)
        assert worker.time(handle, limit=5.0).launches == launches


def test_many_launches_in_place_each_find_the_initial_bytes(worker):
    source = (
        "__kernel void k(__global int *o) { o[get_global_id(0)] += 1; while (o[get_global_id(0)] != 8) { } }"
    )
    spec = launch(64, None, order=("o",), dtypes={"o": "i32"}, scalars={}, buffers={"o": 256})
    handle = build(worker, source.replace("int *o", "volatile int *o"))
    given = share({"o": np.full(64, 7, np.int32)})
    for launches in (10, 40, 20):
        worker.prepare(handle, spec, given, launches)
        assert worker.time(handle, limit=10.0).launches == launches


def test_many_launches_of_a_repeatable_kernel_share_copies(worker):
    handle = build(worker, variant("good"))
    worker.prepare(handle, launch(1 << 20, None), inputs(1 << 20), 300)
    assert worker.time(handle).launches == 300


def test_environment_of_a_worker_is_clean(worker, monkeypatch):
    monkeypatch.setenv("PLANTED_SECRET", "do not pass")
    worker.restart()
    worker.device()
    assert b"PLANTED" not in Path(f"/proc/{worker.pid}/environ").read_bytes()


def test_worker_has_no_core_dumps_and_limited_files(worker):
    worker.device()
    limits = Path(f"/proc/{worker.pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0\s+0", limits)
    assert re.search(r"Max file size\s+\d+\s+\d+", limits)
    assert re.search(r"Max data size\s+\d+\s+\d+", limits)


def test_private_folder_goes_with_the_worker(worker):
    worker.device()
    folder = Path(f"/proc/{worker.pid}/cwd").readlink()
    assert folder.is_dir()
    worker.kill()
    assert not folder.exists()


@pytest.mark.needs("pocl")
def test_owner_that_ends_without_killing_its_worker_leaves_nothing_behind():
    program = (
        "import os\nfrom mb_agent.worker import *\nw = WorkerProcess('opencl', 'pocl')\nw.device()\n"
        "print(w.pid, os.readlink(f'/proc/{w.pid}/cwd'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    pid, folder = done.stdout.split()
    assert gone(int(pid))
    assert not Path(folder).exists()


def test_printing_kernel_does_not_block_and_its_output_is_dropped(worker):
    assert run(worker, variant("talkative"), 20_000, limit=30.0).changed_inputs == ()


def test_inputs_that_nobody_holds_are_freed_in_the_worker(worker):
    handle = build(worker, variant("good"))
    for _ in range(10):
        worker.run(handle, launch(64, None), inputs(64))
    maps = Path(f"/proc/{worker.pid}/maps").read_text()
    assert maps.count("memfd:inputs") <= 2


def test_shared_inputs_cannot_be_written_by_a_worker():
    given = inputs(4)
    with pytest.raises(PermissionError):
        os.pwrite(given.descriptor, b"x", 0)


def test_freed_program_is_refused(worker):
    handle = build(worker, variant("good"))
    worker.close(handle)
    with pytest.raises(AgentError, match="closed"):
        worker.run(handle, launch(4, None), inputs(4))


@pytest.mark.needs("opencl")
def test_unknown_device_says_what_there_is():
    with (
        WorkerProcess("opencl", "no such device") as process,
        pytest.raises(TargetUnavailable, match="there are"),
    ):
        process.device()


@pytest.mark.needs("pocl")
def test_worker_dies_when_its_parent_is_killed():
    program = (
        "from pathlib import Path\nfrom small_kernels import *\nfrom mb_agent.worker import *\n"
        "w = WorkerProcess('opencl', 'pocl')\nh = w.build(variant('endless'), [], Path())\n"
        "print(w.pid, flush=True)\n"
        "w.run(h, launch(16), share({'a': bytes(64), 'o': bytes(64)}), limit=60)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE) as parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert gone(pid)
