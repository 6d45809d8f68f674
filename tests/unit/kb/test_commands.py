"""``modelblaster kb``."""

from __future__ import annotations

import json
from pathlib import Path

import made_outcomes as made
import pytest

from mb_kb.knowledge import KnowledgeBase, entry_of
from mb_lsp import cli
from mb_targets.model import digest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    base = KnowledgeBase(tmp_path / "k")
    won = made.outcome(2.0, number=1)
    lost = made.refused("race", number=2)
    unsure = made.outcome(1.01, number=3, kernel="saxpy")
    base.add(entry_of(o, made.VECTORS["matmul"], "source") for o in (won, lost, unsure))
    base.close()
    return base.folder


def run(folder: Path, *arguments: str) -> int:
    return cli.main(["kb", *arguments, "--knowledge", str(folder)])


def test_stats_counts_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "stats", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["outcomes"], told["kernels"], told["refused"], told["gains"]) == (3, 2, 1, 1)


def test_stats_for_people_names_devices_and_checks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "stats")
    told = capsys.readouterr().out
    assert "cpu-amd-zen4-pocl: 3" in told
    assert "race: 1" in told


def test_show_lists_kernels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "show") == 0
    told = capsys.readouterr().out
    assert "matmul" in told
    assert "saxpy" in told


def test_show_tells_one_kernel_by_name_or_identity(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("matmul", digest("matmul")[:8]):
        assert run(folder, "show", name, "--json") == 0
        assert json.loads(capsys.readouterr().out)["kernel"] == "matmul"


def test_show_puts_what_is_no_verified_gain_in_brackets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, "show", "saxpy")
    assert "(1.01x" in capsys.readouterr().out


def test_show_of_a_kernel_never_seen_is_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "show", "nothing") == 1
    assert "no kernel is named 'nothing'" in capsys.readouterr().err


def test_names_with_markup_are_printed_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = KnowledgeBase(tmp_path)
    base.record(made.outcome(kernel="[bold]k[/bold]"))
    base.close()
    run(tmp_path, "show")
    assert "[bold]k[/bold]" in capsys.readouterr().out


def test_an_export_imports_elsewhere(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "export", str(tmp_path / "a.jsonl")) == 0
    assert run(tmp_path / "new", "import", str(tmp_path / "a.jsonl")) == 0
    assert "3 added, 0 known already, 0 lines refused" in capsys.readouterr().out.replace("outcomes ", "")


def test_refused_lines_are_told_and_end_in_an_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text("nonsense\n")
    assert run(folder, "import", str(tmp_path / "a")) == 1
    assert "line 1: " in capsys.readouterr().err


def test_verify_of_a_sound_base_finds_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "verify") == 0
    assert "0 problems" in capsys.readouterr().out


def test_no_base_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "nowhere", "stats") == 1
    assert "there is no knowledge base" in capsys.readouterr().err


def test_a_damaged_base_is_told_on_the_way(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "outcomes.lmdb").write_bytes(b"noise" * 5000)
    assert run(folder, "stats") == 0
    assert "brings back what can be read" in capsys.readouterr().err
