"""The whole path in an editor with nothing made up: the installed server, the real search, PoCL."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_lsp
from e2e.editing import PROFILES, Window, make_client, until
from lsprotocol import types as t
from numpy.typing import NDArray
from pytest_lsp import ClientServerConfig, LanguageClient

from mb_agent import inputs
from mb_agent.inputs import Fill
from mb_agent.worker import WorkerProcess, share
from mb_lsp import processes
from mb_targets import registry
from mb_targets.concrete import concretize
from mb_targets.model import LaunchSpec, Variant

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.needs("opencl", "pocl")]

GELU = """\
// Activation.
// mb: global=(n,) n=262144 src=f32[n] dst=out f32[n]
__kernel void gelu(__global const float *src, __global float *dst, const int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float x = src[i];
    dst[i] = 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * pow(x, 3.0f))));
}
"""
LINE = 4
SEARCH_SECONDS = 240  # a search verifies for as long as it takes, on a busy machine longer than its budget


@pytest_lsp.fixture(
    scope="module",
    params=["bare", "vscode"],
    config=ClientServerConfig(
        server_command=[str(Path(sys.prefix) / "bin" / "mb-lsp")],
        server_env=dict(os.environ),
        client_factory=make_client,
    ),
)
async def client(
    lsp_client: LanguageClient, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    top = tmp_path_factory.mktemp(request.param)
    (top / "work").mkdir()
    lsp_client.window = Window(lsp_client, top / "work")
    await lsp_client.initialize_session(
        t.InitializeParams(
            capabilities=PROFILES[request.param](),
            root_uri=(top / "work").as_uri(),
            initialization_options={
                "dataFolder": str(top / "data"),
                "device": "pocl",
                "budgetSeconds": 40,
                "budgetCandidates": 6,
            },
        )
    )
    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def window(client: LanguageClient) -> Window:
    found = client.window
    assert isinstance(found, Window)
    return found


async def trusted(window: Window, uri: str, line: int = LINE) -> str:
    """Optimize a kernel, trusting the workspace if that was not done yet, and give the job's id."""
    (first, *_) = [a for a in await window.actions(uri, line) if "ptimize" in a.title]
    return str((await window.pick(first))["job"])


async def test_from_an_open_file_to_an_applied_and_saved_result(window: Window) -> None:
    uri = window.open("gelu.cl", GELU)
    assert await window.titles(uri) == ["Trust this workspace and optimize"]
    assert await window.hover(uri, LINE) is None

    job = await trusted(window, uri)
    assert "gelu` verified" in await window.said("`gelu` ", SEARCH_SECONDS)
    (title,) = await window.titles(uri)
    assert title.startswith("Verified ")
    assert "A variant of this very text was verified" in str(await window.hover(uri, LINE))
    assert "Past outcomes of `gelu`" in str(await window.hover(uri, LINE))

    folder = window.folder.parent / "data" / "jobs" / job
    await window.pick(await window.action(uri, LINE, "Show diff"))
    await window.pick(await window.action(uri, LINE, "Show evidence"))
    assert (folder / "gelu.diff").read_text().startswith("--- a/")
    assert "| speed-up |" in (folder / "gelu.md").read_text()

    await window.pick(await window.action(uri, LINE, "Apply optimized `gelu`"))
    await until(lambda: window.texts[uri] != GELU)
    assert (window.folder / "gelu.cl").read_text() == GELU  # files are the editor's to write
    (title,) = await window.titles(uri)
    assert title.startswith("Applied, verified ")

    (window.folder / "gelu.cl").write_text(window.texts[uri])
    before, after = (
        outputs(window.folder, GELU),
        outputs(window.folder, (window.folder / "gelu.cl").read_text()),
    )
    np.testing.assert_allclose(after, before, rtol=2e-5, atol=1e-6)


async def test_progress_is_shown_while_the_search_runs(window: Window) -> None:
    if window.client.capabilities.window is None:
        assert not window.client.progress_reports
        return
    ((begin, *_, end), *_) = window.client.progress_reports.values()
    assert begin.cancellable
    assert "verified" in end.message


async def test_cancel_leaves_no_process(window: Window) -> None:
    uri = window.open("stop.cl", GELU.replace("gelu", "stop"))
    server = window.client._server.pid
    await trusted(window, uri)
    family = await until(lambda: len(found := processes.descendants(server)) > 1 and found)
    lives = [(pid, processes.birth(pid)) for pid, _ in family]
    await window.pick(await window.action(uri, LINE, "Cancel optimizing `stop`"))
    await until(lambda: not any(processes.alive(pid, born) for pid, born in lives), 5)
    await window.said("`stop`", SEARCH_SECONDS)


async def test_a_kernel_that_does_not_compile_is_a_sentence(window: Window) -> None:
    uri = window.open("typo.cl", GELU.replace("gelu", "typo").replace("src[i]", "scr[i]"))
    await trusted(window, uri)
    message = await window.said("`typo` was not optimized", SEARCH_SECONDS)
    assert "scr" in message
    assert "Traceback" not in message


async def test_a_missing_macro_is_a_question_with_a_quick_fix(window: Window) -> None:
    text = GELU.replace("gelu", "macro").replace("0.5f * x", "SCALE * x")
    uri = window.open("macro.cl", text)
    await trusted(window, uri)
    await window.said("`macro` was not optimized", SEARCH_SECONDS)
    fix = await window.action(uri, LINE, "Insert a `// mb:` comment")
    await window.pick(fix)
    assert "SCALE" in window.texts[uri].split("__kernel")[0]


async def test_a_device_that_is_not_there_is_a_sentence(tmp_path: Path, window: Window) -> None:
    from e2e.raw import served

    with served(server=Path(sys.prefix) / "bin" / "mb-lsp") as server:
        server.begin(tmp_path, device="no-such-device")
        uri = server.open(tmp_path / "work" / "gelu.cl", GELU)
        server.run("trust", uri=uri, kernel="gelu")
        assert "Traceback" not in server.said("`gelu` was not optimized")


def outputs(folder: Path, text: str) -> NDArray[np.float32]:
    """Build and run the kernel of a text as its own launch comment says, always on the same inputs."""
    target = registry.load("opencl")
    (kernel,) = target.find_kernels(text, "opencl")
    launch = target.infer_launch(kernel, None)
    assert isinstance(launch, LaunchSpec)
    concrete = concretize(kernel, launch, {"n": 4096}, None)
    buffers = inputs.make(launch, concrete, Fill("normal", 7))
    with WorkerProcess("opencl", "pocl") as worker:
        handle = worker.build(Variant(kernel.source, kernel.name), launch.options, folder)
        result = worker.run(handle, concrete, share(inputs.as_bytes(buffers)))
    return np.frombuffer(result.outputs["dst"], np.float32)
