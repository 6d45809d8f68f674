from __future__ import annotations

from pathlib import Path

from mb_lsp.trust import Trust, workspace_of


def test_nothing_is_trusted_at_first(tmp_path: Path) -> None:
    assert not Trust(tmp_path / "data").trusted(tmp_path)


def test_trust_holds_for_folders_below_and_in_other_windows(tmp_path: Path) -> None:
    Trust(tmp_path / "data").trust(tmp_path / "work")
    assert Trust(tmp_path / "data").trusted(tmp_path / "work" / "deep" / "er")


def test_a_sibling_whose_name_begins_alike_is_not_trusted(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "data")
    trust.trust(tmp_path / "work")
    assert not trust.trusted(tmp_path / "workshop")


def test_a_link_is_trusted_by_where_it_leads(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    trust = Trust(tmp_path / "data")
    trust.trust(link)
    assert trust.trusted(real)


def test_a_link_inside_a_trusted_folder_is_not_trusted_for_that(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "elsewhere")
    trust = Trust(tmp_path / "data")
    trust.trust(tmp_path / "work")
    assert not trust.trusted(tmp_path / "work" / "link")


def test_what_another_window_trusts_is_seen_without_a_restart(tmp_path: Path) -> None:
    one, other = Trust(tmp_path / "data"), Trust(tmp_path / "data")
    one.trust(tmp_path / "first")
    assert other.trusted(tmp_path / "first")
    one.trust(tmp_path / "second")
    assert other.trusted(tmp_path / "second")


def test_a_damaged_list_trusts_nothing(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    trust.trust(tmp_path / "work")
    (tmp_path / "trusted.json").write_text('["/"')
    assert not trust.trusted(tmp_path / "work")


def test_the_innermost_workspace_folder_decides(tmp_path: Path) -> None:
    roots = [tmp_path, tmp_path / "inner"]
    assert workspace_of(tmp_path / "inner" / "k.cl", roots) == tmp_path / "inner"


def test_a_file_outside_every_workspace_folder_is_judged_by_its_own(tmp_path: Path) -> None:
    assert workspace_of(tmp_path / "k.cl", [tmp_path / "other"]) == tmp_path


def test_a_linked_file_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "k.cl").symlink_to(tmp_path / "elsewhere" / "k.cl")
    assert workspace_of(tmp_path / "work" / "k.cl", [tmp_path / "work"]) == tmp_path / "elsewhere"


def test_a_path_that_climbs_out_of_the_workspace_is_not_in_it(tmp_path: Path) -> None:
    assert workspace_of(tmp_path / "work" / ".." / "k.cl", [tmp_path / "work"]) == tmp_path


def test_unsaved_text_without_a_workspace_is_the_users_own() -> None:
    assert workspace_of(None, []) is None
