"""What goes over the pipe: encodings, line ends, and messages that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from e2e.raw import Raw, served

KERNEL = "__kernel void k(__global float *y) { y[get_global_id(0)] = 1.0f; }"


def lens_start(server: Raw, uri: str) -> tuple[int, int]:
    (found,) = server.ask("textDocument/codeLens", {"textDocument": {"uri": uri}})
    start = found["range"]["start"]
    return start["line"], start["character"]


@pytest.mark.parametrize(
    ("offered", "column"),
    [(["utf-8", "utf-16"], 13), (["utf-16"], 11), (["utf-32", "utf-8"], 10), (None, 11)],
)
def test_columns_count_what_was_agreed(tmp_path: Path, offered: list[str] | None, column: int) -> None:
    with served() as server:
        server.begin(tmp_path, offered)
        uri = server.open(tmp_path / "work" / "k.cl", f"/* a😋 b */ \n/* a😋 b */{KERNEL}")
        assert lens_start(server, uri) == (1, column)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts_and_nothing_else_does(tmp_path: Path, end: str) -> None:
    with served() as server:
        server.begin(tmp_path)
        text = f"/* a\f\v\u2028\x85 b */{end}/* c */{end}{KERNEL}"
        assert lens_start(server, server.open(tmp_path / "work" / "k.cl", text)) == (2, 0)


def test_a_change_of_a_part_is_taken_although_whole_texts_were_asked_for(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri = server.open(tmp_path / "work" / "k.cl", f"// a\fb\n{KERNEL}")
        at = {"line": 1, "character": 0}
        change = {"range": {"start": at, "end": at}, "text": "// one more\n"}
        document = {"uri": uri, "version": 2}
        server.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        assert lens_start(server, uri) == (2, 0)


def test_whole_texts_are_asked_for(tmp_path: Path) -> None:
    with served() as server:
        sync = server.begin(tmp_path)["capabilities"]["textDocumentSync"]
        assert sync["change"] == 1


@pytest.mark.parametrize(
    "arguments", [[], [7], [{"uri": 3}], [{"uri": "file:///none.cl", "kernel": "k"}, "more"], [None]]
)
def test_a_command_with_wrong_arguments_is_one_sentence(tmp_path: Path, arguments: list[object]) -> None:
    with served() as server:
        server.begin(tmp_path)
        command = {"command": "modelblaster.optimize", "arguments": arguments}
        answer = server.ask("workspace/executeCommand", command)
        assert answer is None or ("Traceback" not in answer and "\n" not in answer)
        assert_clean(server)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"jsonrpc":"2.0","id":"a","method":"textDocument/hover","params":{"textDocument":7}}',
        b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}',
        b'{"jsonrpc":"2.0","id":"b","method":"no/such/method"}',
        b'{"jsonrpc":"2.0","id":"c","method":"workspace/executeCommand","params":{"command":"other"}}',
    ],
)
def test_a_malformed_message_leaves_the_server_alive_and_the_user_undisturbed(
    tmp_path: Path, body: bytes
) -> None:
    with served() as server:
        server.begin(tmp_path)
        server.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        uri = server.open(tmp_path / "work" / "k.cl", KERNEL)
        assert lens_start(server, uri) == (0, 0)
        assert_clean(server)


@pytest.mark.parametrize(
    "position", ["x", {"line": -1, "character": 0}, {"line": 0, "character": -1}, {"line": "0"}]
)
def test_a_request_with_wrong_parameters_is_answered_with_an_error(tmp_path: Path, position: object) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri = server.open(tmp_path / "work" / "k.cl", KERNEL)
        answer = server.ask("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})
        assert answer == "the parameters of textDocument/hover are not what the protocol says"


def test_a_request_after_the_shutdown_is_refused(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        server.ask("shutdown", None)
        document = {"textDocument": {"uri": "file:///k.cl"}}
        assert server.ask("textDocument/codeLens", document) == "the server was shut down"


def test_nothing_is_trusted_for_a_kernel_that_is_not_there(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri = server.open(tmp_path / "work" / "k.cl", KERNEL)
        assert server.run("trust", uri=uri, kernel="other") is None
        assert not (tmp_path / "data" / "trusted.json").exists()


def test_requests_for_documents_that_are_not_open_are_answered_with_nothing(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        document = {"textDocument": {"uri": "file:///nowhere/k.cl"}}
        at = {"line": 0, "character": 0}
        assert server.ask("textDocument/codeLens", document) == []
        assert server.ask("textDocument/hover", {**document, "position": at}) is None
        changes = [{"text": KERNEL}]
        moved = {"uri": "file:///nowhere/k.cl", "version": 2}
        server.notify("textDocument/didChange", {"textDocument": moved, "contentChanges": changes})
        assert server.ask("textDocument/codeLens", document) == []


def test_a_file_that_is_not_utf8_is_served_as_the_editor_reads_it(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        path = tmp_path / "work" / "latin.cl"
        path.write_bytes(b"// \xe9\n" + KERNEL.encode())
        assert lens_start(server, server.open(path, "// \ufffd\n" + KERNEL)) == (1, 0)


def assert_clean(server: Raw) -> None:
    """No popup, no traceback."""
    for message in server.seen:
        assert "Traceback" not in json.dumps(message)
        assert message.get("method") != "window/showMessage" or "not open" in message["params"]["message"]
