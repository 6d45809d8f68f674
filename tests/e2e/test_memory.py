"""What the server shows of the knowledge base, whatever state that is in."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import made_events
import pytest
from e2e.raw import Raw, served

from mb_kb.knowledge import open_base
from mb_targets import registry
from mb_targets.model import Kernel

TEXT = "__kernel void {name}(__global float *y, int n)\n{{\n    y[get_global_id(0)] *= 2.0f;\n}}\n"


@pytest.fixture
def knowledge(tmp_path: Path) -> Path:
    """A knowledge base with a gain and a refusal of kernel ``known``."""
    folder = tmp_path / "data" / "knowledge"
    base = open_base(folder)
    target = registry.load("opencl")
    (kernel,) = target.find_kernels(TEXT.format(name="known"), "opencl")
    for tried in (made_events.tried("jam", 2.1), made_events.tried("unroll", None)):
        outcome = dataclasses.replace(tried.outcome, identity=kernel.identity, kernel=kernel.name)
        base.record(outcome, list(target.features(kernel)))
    base.close()
    return folder


def hover(server: Raw, uri: str) -> str:
    position = {"line": 2, "character": 6}
    answer = server.ask("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})
    return str(answer["contents"]["value"]) if answer else ""


def title(server: Raw, uri: str) -> str:
    (lens,) = server.ask("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return str(server.ask("codeLens/resolve", lens)["command"]["title"])


def opened(server: Raw, folder: Path, name: str) -> str:
    server.begin(folder)
    return server.open(folder / "work" / f"{name}.cl", TEXT.format(name=name))


def test_past_outcomes_are_in_the_lens(tmp_path: Path, knowledge: Path) -> None:
    with served() as server:
        uri = opened(server, tmp_path, "known")
        assert title(server, uri).endswith("optimize | 2 past outcomes | best 2.1x on cpu-test-pocl")


def test_past_outcomes_good_and_bad_are_in_the_hover(tmp_path: Path, knowledge: Path) -> None:
    with served() as server:
        text = hover(server, opened(server, tmp_path, "known"))
    assert "**2.10x [2.06-2.14]**" in text
    assert "refused: values" in text
    assert "2 tried, 1 verified gains, 1 refused" in text


def test_a_similar_kernel_is_in_the_hover_of_an_unknown_one(tmp_path: Path, knowledge: Path) -> None:
    with served() as server:
        uri = opened(server, tmp_path, "stranger")
        hover(server, uri)  # the first look finds the similar ones, the next shows them
        assert "| `known` |" in hover(server, uri)


def test_a_kernel_that_nothing_is_known_of_has_no_hover(tmp_path: Path) -> None:
    with served() as server:
        assert hover(server, opened(server, tmp_path, "nobody")) == ""


def test_looking_makes_no_knowledge_base(tmp_path: Path) -> None:
    with served() as server:
        uri = opened(server, tmp_path, "nobody")
        hover(server, uri)
        title(server, uri)
    assert not (tmp_path / "data").exists()


def test_a_damaged_knowledge_base_is_a_sentence_and_the_rest_works(tmp_path: Path, knowledge: Path) -> None:
    (knowledge / "outcomes.lmdb").write_bytes(os.urandom(1 << 16))
    with served() as server:
        uri = opened(server, tmp_path, "known")
        assert title(server, uri) == "Trust this workspace and optimize"
        assert hover(server, uri) == ""
        told = [m["params"]["message"] for m in server.seen if m.get("method") == "window/showMessage"]
    assert len(told) == 1
    assert "damaged" in told[0]
    assert "Traceback" not in told[0]


def test_a_knowledge_folder_that_is_a_file_is_no_knowledge(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "knowledge").write_text("")
    with served() as server:
        assert hover(server, opened(server, tmp_path, "known")) == ""


def test_a_kernel_is_known_by_its_tokens_not_its_spacing(knowledge: Path) -> None:
    def identity(text: str) -> str:
        kernel: Kernel = registry.load("opencl").find_kernels(text, "opencl")[0]
        return kernel.identity

    text = TEXT.format(name="known")
    assert identity(text) == identity("// note\n" + text.replace("    ", "\t"))
