from __future__ import annotations

import re
from pathlib import Path

from mb_lsp import server

DOCS = Path(__file__).parents[3] / "docs" / "server.md"


def test_the_documented_commands_are_the_servers() -> None:
    named = set(re.findall(r"`(modelblaster\.\w+)`", DOCS.read_text()))
    assert named == set(server.make().protocol.fm.commands)
