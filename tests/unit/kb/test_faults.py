"""Files that are damaged, foreign, newer, read-only; disks that are full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import made_outcomes as made
import msgspec
import pytest

from mb_kb import keys
from mb_kb.errors import KnowledgeError, ReadOnly, TooNew
from mb_kb.knowledge import KnowledgeBase, entry_of, open_base
from mb_kb.spool import Entry

LIMITED = """
import resource, sys
from pathlib import Path
import made_outcomes as made
from mb_kb.knowledge import KnowledgeBase
base = KnowledgeBase(Path(sys.argv[1]))
room = base.store.path.stat().st_size + 8192
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
kept = [base.record(made.outcome(number=n, kernel=str(n))) for n in range(100, 160)]
print(kept.count(False), "make room" in " ".join(base.notices))
base.close()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a closed base of 300 outcomes."""
    base = KnowledgeBase(tmp_path)
    base.add(entry_of(o) for o in made.crowd(300))
    base.close()
    return base.store.path


def replaced(file: Path) -> KnowledgeBase:
    """Open a damaged base, and expect it to have been replaced with all said and nothing deleted."""
    before = file.read_bytes()
    base = KnowledgeBase(file.parent)
    base.record(made.outcome())
    kept = list(file.parent.glob("damaged-*.lmdb"))
    assert [k.read_bytes() for k in kept] == [before]
    assert f"kept as {kept[0]}" in base.notices[0]
    assert base.stats().outcomes == 1
    return base


def test_a_truncated_file_is_set_aside(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)
    replaced(file).close()


def test_a_file_of_something_else_is_set_aside(file: Path) -> None:
    file.write_bytes(b"These are my notes.\n" * 1000)
    replaced(file).close()


def test_a_file_shorter_than_a_page_is_set_aside(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1000])
    replaced(file).close()


def test_a_file_with_pages_of_noise_is_set_aside_when_they_are_reached(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[8192:] = os.urandom(len(data) - 8192)
    file.write_bytes(data)
    replaced(file).close()


def test_an_empty_file_becomes_a_base(file: Path) -> None:
    file.write_bytes(b"")
    base = KnowledgeBase(file.parent)
    base.record(made.outcome())
    assert (base.stats().outcomes, base.notices) == (1, ())
    base.close()


def test_a_sound_file_that_ends_before_its_last_page_is_kept(file: Path) -> None:
    data = file.read_bytes()
    whole = KnowledgeBase(file.parent)
    counted = whole.stats().outcomes
    whole.close()
    file.write_bytes(data)
    base = KnowledgeBase(file.parent)
    assert (base.stats().outcomes, base.notices) == (counted, ())
    base.close()


def test_a_second_damage_does_not_replace_what_was_kept_first(file: Path) -> None:
    for _ in range(2):
        file.write_bytes(b"noise" * 5000)
        KnowledgeBase(file.parent).close()
    assert len(list(file.parent.glob("damaged-*.lmdb"))) == 2


def test_a_base_set_aside_by_another_process_is_left_by_this_one(file: Path) -> None:
    base = KnowledgeBase(file.parent)
    file.rename(file.with_name("damaged-elsewhere.lmdb"))
    file.with_name(file.name + "-lock").rename(file.with_name("damaged-elsewhere.lmdb-lock"))
    assert base.record(made.outcome()) is True
    assert base.stats().outcomes == 1
    base.close()


def test_similar_kernels_of_a_replaced_base_are_forgotten(file: Path) -> None:
    base = KnowledgeBase(file.parent)
    base.record(made.outcome(), made.VECTORS["matmul"])
    assert base.similar(made.VECTORS["matmul"])
    file.rename(file.with_name("elsewhere.lmdb"))
    file.with_name(file.name + "-lock").rename(file.with_name("elsewhere.lmdb-lock"))
    assert base.similar(made.VECTORS["matmul"]) == []
    base.close()


def test_a_row_that_cannot_be_read_is_no_reason_to_drop_the_rest(file: Path) -> None:
    base = KnowledgeBase(file.parent)
    key = keys.AGGREGATE + keys.pack(made.STATE)[keys.EXACT] + keys.action_key(made.JAM)
    with base.store.writing():
        base.store.write(lambda t: t.put(key, b"\xc1"))
    assert base.record(made.outcome(number=999)) is True
    assert "summed up anew" in base.notices[0]
    assert (base.stats().outcomes, base.verify().problems) == (301, ())
    base.close()


@pytest.fixture
def newer(file: Path) -> Iterator[KnowledgeBase]:
    """A base that a newer version wrote."""
    base = KnowledgeBase(file.parent)
    with base.store.writing():
        base.store.write(lambda t: t.put(keys.META + b"schema", msgspec.msgpack.encode(99)))
    base.close()
    base = KnowledgeBase(file.parent)
    yield base
    base.close()


def test_a_newer_base_is_read(newer: KnowledgeBase) -> None:
    assert newer.stats().outcomes == 300


def test_a_newer_base_is_not_written(newer: KnowledgeBase) -> None:
    with pytest.raises(TooNew, match="update this program"):
        newer.record(made.outcome())


def test_a_newer_base_says_so(newer: KnowledgeBase) -> None:
    assert "newer version" in newer.notices[0]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Take from this process the right to write in a folder; root has to become somebody else for that."""
    folder.chmod(0o555)
    for path in folder.iterdir():
        path.chmod(0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)
    folder.chmod(0o755)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that anybody can reach."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def nobody(file: Path, public: Path) -> Iterator[Path]:
    """A folder with a base that this process may read and not write."""
    shutil.copy(file, public)
    with read_only(public):
        yield public


def test_a_base_in_a_read_only_folder_is_read(nobody: Path) -> None:
    base = KnowledgeBase(nobody)
    assert base.stats().outcomes == 300
    base.close()


def test_a_base_in_a_read_only_folder_is_not_written(nobody: Path) -> None:
    base = KnowledgeBase(nobody)
    with pytest.raises(ReadOnly, match="permissions"):
        base.record(made.outcome())
    base.close()


def test_a_folder_that_cannot_be_made_is_a_sentence(nobody: Path) -> None:
    with pytest.raises(ReadOnly, match="permissions"):
        KnowledgeBase(nobody / "new")


def test_a_read_only_folder_without_a_base_is_a_sentence(public: Path) -> None:
    with read_only(public), pytest.raises(ReadOnly, match="may not be made"):
        KnowledgeBase(public)


def test_a_file_that_may_not_grow_sends_outcomes_to_the_spool_and_says_so(file: Path) -> None:
    tests = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": tests}
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(file.parent)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    spooled, said = ran.stdout.split()
    assert (int(spooled) > 0, said) == (True, "True")


def test_what_a_full_disk_sent_to_the_spool_is_taken_in_once_there_is_room(file: Path) -> None:
    test_a_file_that_may_not_grow_sends_outcomes_to_the_spool_and_says_so(file)
    base = KnowledgeBase(file.parent)
    base.record(made.outcome())
    assert (base.stats().outcomes, base.stats().waiting) == (361, 0)
    assert base.verify().problems == ()
    base.close()


def test_a_map_that_is_too_small_grows(tmp_path: Path) -> None:
    base = KnowledgeBase(tmp_path, map_bytes=1 << 16)
    base.add(entry_of(o) for o in made.crowd(300))
    assert base.stats().outcomes == 300
    base.close()


@pytest.mark.parametrize(
    "content", [b"torn", msgspec.msgpack.encode(Entry(bytes(16), b"no row"))], ids=["torn", "no row"]
)
def test_a_spooled_file_that_cannot_be_read_is_put_by(base: KnowledgeBase, content: bytes) -> None:
    base.spool.mkdir()
    (base.spool / f"{'00' * 16}.outcome").write_bytes(content)
    assert base.record(made.outcome()) is True
    assert [p.suffix for p in base.spool.iterdir()] == [".unreadable"]


def test_one_object_serves_a_folder_in_one_process(tmp_path: Path) -> None:
    base = open_base(tmp_path / "a")
    assert open_base(tmp_path / "b" / ".." / "a") is base
    base.close()


def test_a_closed_base_can_be_opened_again(tmp_path: Path) -> None:
    open_base(tmp_path).close()
    base = open_base(tmp_path)
    assert base.record(made.outcome()) is True
    base.close()


def test_a_closed_base_says_so(base: KnowledgeBase) -> None:
    base.close()
    with pytest.raises(KnowledgeError, match="closed"):
        base.stats()
