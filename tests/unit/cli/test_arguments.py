"""What the command line understands."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mb_lsp import pick
from mb_lsp.cli import main, parser, seconds


@pytest.mark.parametrize(
    ("text", "expected"), [("60", 60.0), ("60s", 60.0), ("2m", 120.0), ("1.5h", 5400.0), ("500ms", 0.5)]
)
def test_a_duration_is_read(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-3s", "ten", "5 days"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write it as"):
        seconds(text)


def test_a_kernel_is_named_after_a_colon() -> None:
    assert pick.split("folder/a.cl:matmul") == (Path("folder/a.cl"), "matmul")


def test_a_colon_that_belongs_to_a_files_name_stays_in_it(tmp_path: Path) -> None:
    file = tmp_path / "a.cl:b"
    file.touch()
    assert pick.split(str(file)) == (file, "")


def test_a_drive_letter_is_no_file() -> None:
    assert pick.split("C:x") == (Path("C:x"), "")


def test_the_budget_is_a_minute_unless_said() -> None:
    assert parser("optimize").parse_args(["optimize", "a.cl"]).budget == 60.0


def test_a_kernel_behind_a_byte_order_mark_is_found(tmp_path: Path) -> None:
    file = tmp_path / "k.cl"
    file.write_bytes(b"\xef\xbb\xbf__kernel void k(__global float *y) { y[get_global_id(0)] = 1.0f; }")
    assert [kernel.name for kernel in pick.kernels(pick.read(file))] == ["k"]


def test_a_missing_file_is_one_sentence_and_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "no/such.cl"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_contradicting_options_are_a_usage_error() -> None:
    assert main(["optimize", "a.cl", "--knowledge", "d", "--no-knowledge"]) == 2


def test_a_folder_is_refused_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", str(tmp_path)]) == 1
    assert "name one file" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["/dev/zero", ""])
def test_what_is_no_regular_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    file = tmp_path / "z.cl"
    if target:
        file.symlink_to(target)
    else:
        os.mkfifo(file)
    assert main(["optimize", str(file)]) == 1
    assert "not a regular file" in capsys.readouterr().err


def test_a_file_that_is_too_long_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.cl"
    with file.open("wb") as sparse:
        sparse.truncate(pick.MOST_BYTES + 1)
    assert main(["optimize", str(file)]) == 1
    assert "more than 16 MB" in capsys.readouterr().err


def test_no_file_at_all_is_said_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", ""]) == 2
    assert "no file is named" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", [["--seed", "-1"], ["--seed", str(2**64)], ["--candidates", "0"], ["--budget", "9" * 400]]
)
def test_a_number_out_of_range_is_a_usage_error(option: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["optimize", "a.cl", *option])
    assert left.value.code == 2


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_standard_output_is_one_sentence_and_code_4(options: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mb_lsp.cli", "doctor", *options],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (4, 1)


def test_a_data_folder_that_cannot_be_used_is_a_result_of_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.cl"
    file.write_text("__kernel void k(__global float *y) { y[get_global_id(0)] = 1.0f; }")
    monkeypatch.setenv("MODELBLASTER_HOME", str(file))
    assert main(["optimize", str(file), "--json"]) == 1
    assert "MODELBLASTER_HOME" in json.loads(capsys.readouterr().out)["reason"]


def test_text_that_is_not_utf8_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "latin.cl"
    file.write_bytes(b"// \xe9\n")
    assert main(["optimize", str(file)]) == 1
    assert "UTF-8" in capsys.readouterr().err


def test_the_command_line_starts_without_numpy_and_opencl() -> None:
    heavy = "{'numpy', 'pyopencl', 'clang'}"
    code = f"import sys, mb_lsp.cli, mb_lsp.optimize; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ)).returncode == 0
