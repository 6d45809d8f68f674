"""What the documents promise is what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mb_lsp.cli import parser
from mb_lsp.problems import Code

ROOT = Path(__file__).parents[3]
COMMANDS = (ROOT / "docs" / "cli.md").read_text()


def options_of(command: str) -> set[str]:
    with pytest.raises(SystemExit):
        parser(command).parse_args([command, "--no-such-option"])
    top = parser(command)
    chosen = top._subparsers._group_actions[0].choices[command]  # type: ignore[union-attr, index]  # argparse has no public way
    return {s for a in chosen._actions for s in a.option_strings if s.startswith("--") and s != "--help"}


def test_every_option_of_optimize_is_documented_and_no_other() -> None:
    part = COMMANDS[COMMANDS.index("## `modelblaster optimize") : COMMANDS.index("### Exit codes")]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `--")]
    assert {o for row in rows for o in re.findall(r"--[\w-]+", row)} == options_of("optimize")


def test_every_exit_code_is_documented_and_no_other() -> None:
    part = COMMANDS[COMMANDS.index("### Exit codes") : COMMANDS.index("### JSON")]
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", part, re.MULTILINE)} == set(Code)


@pytest.mark.parametrize("mark", ["main", "tests"])
def test_the_readme_has_each_command_on_one_line(mark: str) -> None:
    block = re.search(
        rf"^```sh {mark}\n(.*?)\n```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert block
    assert "\n" not in block[1]


def test_the_links_of_the_documents_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    links = [(p, target) for p in pages for target in re.findall(r"\]\(([^)#:]+)\)", p.read_text())]
    assert [(p.name, target) for p, target in links if not (p.parent / target).exists()] == []
