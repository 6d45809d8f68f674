"""Export, import, and what is saved of a damaged file."""

from __future__ import annotations

import os
from pathlib import Path

import made_outcomes as made
import msgspec
import pytest

from mb_kb import keys, transfer
from mb_kb.errors import KnowledgeError
from mb_kb.knowledge import KnowledgeBase, entry_of
from mb_targets.outcome import Outcome

OUTCOMES = made.crowd(60)


def filled(folder: Path, outcomes: list[Outcome]) -> KnowledgeBase:
    base = KnowledgeBase(folder)
    base.add([entry_of(o, made.VECTORS["matmul"], f"source of {o.provenance.variant}") for o in outcomes])
    return base


def exported(base: KnowledgeBase, path: Path) -> str:
    transfer.export(base, path)
    return path.read_text()


def test_an_import_of_an_export_gives_the_same_knowledge(base: KnowledgeBase, tmp_path: Path) -> None:
    first = filled(tmp_path / "first", OUTCOMES)
    text = exported(first, tmp_path / "a")
    came = transfer.import_(base, tmp_path / "a")
    assert (came.outcomes, came.added, came.refused) == (60, 60, 0)
    assert exported(base, tmp_path / "b") == text
    assert base.verify().problems == ()
    first.close()


def test_an_export_does_not_depend_on_the_order_of_recording(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "one", OUTCOMES), filled(tmp_path / "other", OUTCOMES[::-1])
    assert exported(one, tmp_path / "a") == exported(other, tmp_path / "b")
    one.close()
    other.close()


def test_a_second_import_adds_nothing(base: KnowledgeBase, tmp_path: Path) -> None:
    base.add([entry_of(o) for o in OUTCOMES])
    transfer.export(base, tmp_path / "a")
    assert transfer.import_(base, tmp_path / "a").added == 0


def test_two_exports_put_behind_one_another_merge(base: KnowledgeBase, tmp_path: Path) -> None:
    one, other = filled(tmp_path / "one", OUTCOMES[:40]), filled(tmp_path / "other", OUTCOMES[20:])
    both = exported(one, tmp_path / "a") + exported(other, tmp_path / "b")
    (tmp_path / "both").write_text(both)
    assert transfer.import_(base, tmp_path / "both").added == 60
    one.close()
    other.close()


def test_vectors_and_sources_come_along(base: KnowledgeBase, tmp_path: Path) -> None:
    first = filled(tmp_path / "first", [made.outcome()])
    transfer.export(first, tmp_path / "a")
    transfer.import_(base, tmp_path / "a")
    variant = made.outcome().provenance.variant
    assert base.source(variant) == f"source of {variant}"
    assert base.similar(made.VECTORS["matmul"])[0].past.kernel == "matmul"
    first.close()


def test_a_vector_that_stands_behind_its_outcomes_is_taken(base: KnowledgeBase, tmp_path: Path) -> None:
    first = filled(tmp_path / "first", [made.outcome()])
    lines = exported(first, tmp_path / "a").splitlines()
    (tmp_path / "a").write_text("\n".join(lines[::-1]))
    transfer.import_(base, tmp_path / "a")
    assert base.stats().vectors == 1
    first.close()


def bad_lines() -> dict[str, str]:
    good = msgspec.json.encode(transfer.OutcomeLine("00" * 16, made.outcome())).decode()
    return {
        "no JSON": "{",
        "no such line": '{"type":"poem"}',
        "a short id": good.replace("00" * 16, "00"),
        "an id that is none": good.replace("00" * 16, "zz" * 16),
        "a speed-up below zero": good.replace('"value":2.0', '"value":-2.0'),
        "a speed-up that is text": good.replace('"value":2.0', '"value":"fast"'),
        "no samples": good.replace('"samples":20', '"samples":0'),
        "measured but never compared equal": good.replace('"smoke":true', '"smoke":false'),
        "a level that is none": good.replace('"level":3', '"level":9'),
        "far too long": '{"type":"source","variant":"x","text":"' + "x" * (1 << 20) + '"}',
    }


@pytest.mark.parametrize("kind", bad_lines())
def test_a_bad_line_is_refused_by_number_and_the_rest_taken(
    base: KnowledgeBase, tmp_path: Path, kind: str
) -> None:
    good = msgspec.json.encode(transfer.OutcomeLine("01" * 16, made.outcome())).decode()
    (tmp_path / "a").write_text(f"{bad_lines()[kind]}\n{good}\n")
    came = transfer.import_(base, tmp_path / "a")
    assert (came.added, came.refused) == (1, 1)
    assert came.reasons[0].startswith("line 1: ")


def test_a_file_of_a_newer_version_says_so(base: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"type":"modelblaster knowledge","schema":99}\n')
    assert "newer version" in transfer.import_(base, tmp_path / "a").reasons[0]


def test_a_missing_file_is_a_sentence(base: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="cannot read"):
        transfer.import_(base, tmp_path / "nothing")


def test_an_export_to_a_folder_that_is_not_there_is_a_sentence(base: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError):
        transfer.export(base, tmp_path / "no" / "where")


def test_a_whole_database_is_imported_as_it_is(base: KnowledgeBase, tmp_path: Path) -> None:
    first = filled(tmp_path / "first", OUTCOMES)
    first.close()
    assert transfer.import_(base, first.store.path).added == 60
    assert base.stats().vectors == len({o.identity for o in OUTCOMES})


def test_what_is_left_of_a_truncated_database_is_imported(base: KnowledgeBase, tmp_path: Path) -> None:
    first = filled(tmp_path / "first", made.crowd(2000))
    first.close()
    path = first.store.path
    os.truncate(path, path.stat().st_size * 3 // 4)
    assert 0 < transfer.import_(base, path).added < 2000
    assert base.verify().problems == ()


def test_what_is_left_of_a_database_with_a_page_of_noise_is_imported(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    first = filled(tmp_path / "first", made.crowd(2000))
    row = first.store.read(lambda t: t.get(keys.sequence_key(1000)))
    first.close()
    data = bytearray(first.store.path.read_bytes())
    assert row is not None
    page = data.index(row) // 4096 * 4096
    data[page : page + 4096] = os.urandom(4096)
    first.store.path.write_bytes(data)
    assert 1900 < transfer.import_(base, first.store.path).added < 2000
