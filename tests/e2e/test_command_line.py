"""The command line as a person runs it: real processes, a real OpenCL device."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mb_lsp import processes

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMAND = [sys.executable, "-m", "mb_lsp.cli"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("MODELBLASTER_HOME", str(folder))
    return folder


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A copy of an example, small enough to search in seconds."""
    file = tmp_path / "work" / "row_sum.cl"
    file.parent.mkdir()
    file.write_text((EXAMPLES / "row_sum.cl").read_text().replace("rows=4096", "rows=512"))
    return file


def optimize(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "optimize", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_a_kernel_is_made_faster_and_the_result_is_one_json_object(kernel: Path) -> None:
    done = optimize(
        str(kernel), "--device", "pocl", "--budget", "90s", "--candidates", "3", "--json", "--seed", "1"
    )
    assert done.returncode == 0, done.stderr
    result = found(done)
    assert (result["verdict"], result["level"], result["speedup"]["clock"]) == ("faster", "E4", "cpu")
    assert result["speedup"]["low"] > 1.03


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_nothing_is_written_unless_asked(kernel: Path) -> None:
    before = kernel.read_bytes()
    optimize(str(kernel), "--device", "pocl", "--candidates", "3", "--json")
    assert kernel.read_bytes() == before


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_a_byte_order_mark_stays_where_it_is(kernel: Path) -> None:
    mark = b"\xef\xbb\xbf"
    before = mark + kernel.read_bytes()
    kernel.write_bytes(before)
    optimize(str(kernel), "--device", "pocl", "--budget", "90s", "--candidates", "3", "--apply")
    after = kernel.read_bytes()
    assert after != before
    assert (after[:3], after.count(mark)) == (mark, 1)


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_what_was_applied_is_the_diff_and_runs_again(kernel: Path) -> None:
    original = kernel.parent / "original.cl"
    shutil.copy(kernel, original)
    result = found(
        optimize(str(kernel), "--device", "pocl", "--budget", "90s", "--candidates", "3", "--json", "--apply")
    )
    assert result["applied"] == [str(kernel)]
    patched = subprocess.run(
        ["patch", "-s", "-o", "-", str(original)],
        input=result["diff"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert patched.stdout == kernel.read_text()
    again = optimize(str(kernel), "--device", "pocl", "--candidates", "1", "--json")
    assert again.returncode == 0, again.stderr


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_an_interrupt_ends_every_process_and_gives_130(kernel: Path) -> None:
    command = [*COMMAND, "optimize", str(kernel), "--device", "pocl", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "started" in process.stderr.readline()
    alive = [(pid, processes.birth(pid)) for pid, _ in processes.descendants(process.pid)]
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, json.loads(out)["verdict"]) == (130, "cancelled")
    assert not any(processes.alive(*each) for each in alive)


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_an_interrupted_search_keeps_the_best_that_was_verified(kernel: Path) -> None:
    command = [*COMMAND, "optimize", str(kernel), "--device", "pocl", "--budget", "5m", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "best so far" in line:
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    result = json.loads(out)
    assert (result["verdict"], result["level"], bool(result["diff"])) == ("cancelled", "E4", True)


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_a_killed_command_leaves_no_process_behind(kernel: Path) -> None:
    command = [*COMMAND, "optimize", str(kernel), "--device", "pocl", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "started" in process.stderr.readline()
    alive = [(pid, processes.birth(pid)) for pid, _ in processes.descendants(process.pid)]
    process.kill()
    process.communicate(timeout=20)
    deadline = time.monotonic() + 20
    while any(processes.alive(*each) for each in alive) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(processes.alive(*each) for each in alive)


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_several_kernels_are_optimized_in_turn(tmp_path: Path) -> None:
    file = tmp_path / "two.cl"
    body = """// mb: global=(n,) n=4096 y=inout f32[n]
    __kernel void {}(__global float *y, int n) {{ if (get_global_id(0) < n) y[get_global_id(0)] += 1.0f; }}
    """
    file.write_text(body.format("first") + body.format("second"))
    done = optimize(str(file), "--device", "pocl", "--candidates", "1", "--json")
    assert [r["kernel"] for r in json.loads(done.stdout)] == ["first", "second"]


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_a_kernel_that_does_not_compile_is_the_inputs_fault(tmp_path: Path) -> None:
    file = tmp_path / "k.cl"
    file.write_text(
        "// mb: global=(n,) n=64 y=f32[n]\n__kernel void k(__global float *y) { y[0] = nothing; }\n"
    )
    done = optimize(str(file), "--device", "pocl", "--json")
    assert (done.returncode, found(done)["verdict"]) == (1, "failed")
    assert "nothing" in found(done)["reason"]


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_kernels_of_one_name_in_several_strings_are_each_taken(tmp_path: Path) -> None:
    file = tmp_path / "host.py"
    body = "// mb: global=(n,) n=64 y=f32[n]\n__kernel void k(__global float *y) {{ y[0] = {}; }}\n"
    file.write_text(f'A = """{body.format("first_one")}"""\nB = """{body.format("second_one")}"""\n')
    done = optimize(str(file), "--device", "pocl", "--json")
    reasons = [result["reason"] for result in json.loads(done.stdout)]
    assert ["first_one" in reasons[0], "second_one" in reasons[1]] == [True, True]


@pytest.mark.usefixtures("home")
def test_a_device_that_is_not_there_gives_3_and_says_what_is(kernel: Path) -> None:
    done = optimize(str(kernel), "--device", "no such device", "--json")
    assert done.returncode == 3
    assert found(done)["reason"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("text", "says"), [("", "is empty"), ("int x;\n", "no whole kernel"), ("__kernel v", "no whole")]
)
def test_a_file_without_a_kernel_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "k.cl"
    file.write_text(text)
    done = optimize(str(file))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert says in done.stderr


@pytest.mark.usefixtures("home")
def test_a_kernel_that_is_not_there_names_those_that_are(kernel: Path) -> None:
    done = optimize(f"{kernel}:nosuch")
    assert done.returncode == 1
    assert "it has: row_sum" in done.stderr


def test_a_data_folder_that_cannot_be_written_is_said(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELBLASTER_HOME", "/proc/nowhere")
    done = optimize(str(kernel), "--no-knowledge")
    assert done.returncode == 1
    assert "MODELBLASTER_HOME" in done.stdout


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_a_knowledge_base_that_cannot_be_written_loses_no_result(kernel: Path) -> None:
    done = optimize(
        str(kernel), "--device", "pocl", "--knowledge", "/proc/nowhere", "--candidates", "2", "--json"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_a_damaged_knowledge_base_loses_no_result(kernel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(os.urandom(8192))
    done = optimize(
        str(kernel), "--device", "pocl", "--knowledge", str(folder), "--candidates", "2", "--json"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("pocl")
@pytest.mark.usefixtures("home")
def test_a_kernel_inside_a_python_file_is_optimized(tmp_path: Path) -> None:
    file = tmp_path / "brighten.py"
    text = (EXAMPLES / "host_py" / "brighten.py").read_text()
    file.write_text(text.replace("count=2097152", "count=65536"))
    done = optimize(str(file), "--device", "pocl", "--candidates", "2", "--json")
    assert (done.returncode, found(done)["kernel"]) == (0, "brighten"), done.stderr
    assert found(done)["refused"] < found(done)["tried"]


def test_doctor_names_each_target_and_its_parts() -> None:
    done = subprocess.run(
        [*COMMAND, "doctor", "--json"], capture_output=True, text=True, check=False, timeout=60
    )
    reports = json.loads(done.stdout)
    assert [r["target"] for r in reports] == ["opencl", "workers"]
    assert reports[0]["findings"]
