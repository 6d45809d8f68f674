from __future__ import annotations

import re
from pathlib import Path

import msgspec

from mb_lsp import settings
from mb_lsp.settings import Settings

DOCS = Path(__file__).parents[3] / "docs" / "settings.md"


def test_absent_options_give_the_defaults() -> None:
    assert settings.read(None) == (Settings(), [])


def test_good_options_are_taken() -> None:
    chosen, problems = settings.read({"device": "pocl", "budgetSeconds": 5, "precision": "bitwise"})
    assert (chosen.device, chosen.budget_seconds, chosen.precision, problems) == ("pocl", 5, "bitwise", [])


def test_a_bad_option_is_reported_and_the_others_are_taken() -> None:
    chosen, problems = settings.read({"budgetSeconds": "long", "device": "pocl"})
    assert chosen == Settings(device="pocl")
    assert len(problems) == 1
    assert "budgetSeconds" in problems[0]


def test_an_unknown_option_is_reported_by_name() -> None:
    assert "colour" in settings.read({"colour": 1})[1][0]


def test_a_budget_of_nothing_is_refused() -> None:
    chosen, problems = settings.read({"budgetSeconds": 0, "budgetCandidates": -1})
    assert chosen == Settings()
    assert len(problems) == 2


def test_options_that_are_no_object_are_reported() -> None:
    assert settings.read([1])[1]


def test_the_documented_table_is_the_struct() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", DOCS.read_text(), re.MULTILINE)
    fields = msgspec.structs.fields(Settings)
    assert rows == [(f.encode_name, msgspec.json.encode(f.default).decode()) for f in fields]
