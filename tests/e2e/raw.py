"""A server at the other end of a pipe, spoken to in plain JSON: for what a client library hides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCRIPTED = Path(__file__).parent / "scripted_server.py"

Message = dict[str, Any]


class Raw:
    """A running server.

    Attributes:
        seen: Every message that it sent.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.seen: list[Message] = []
        self._number = 0

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Message) -> None:
        """Write a message."""
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        """Tell the server something."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any) -> Any:
        """Ask and wait for the answer, an error's message included."""
        self._number += 1
        number = self._number
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer = self.wait(lambda m: m.get("id") == number and "method" not in m)
        return answer["error"]["message"] if "error" in answer else answer.get("result")

    def wait(self, wanted: Callable[[Message], bool]) -> Message:
        """Read until a message comes that is wanted; what the server asks is answered with nothing."""
        while True:
            message = self._read()
            self.seen.append(message)
            if "id" in message and "method" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
            if wanted(message):
                return message

    def said(self, words: str) -> str:
        """Wait for a message to the user."""
        found = self.wait(
            lambda m: m.get("method") == "window/showMessage" and words in m["params"]["message"]
        )
        return str(found["params"]["message"])

    def begin(self, folder: Path, encodings: list[str] | None = None, **options: object) -> Any:
        """Initialize, with a workspace that is a folder."""
        (folder / "work").mkdir(parents=True, exist_ok=True)
        capabilities = {"general": {"positionEncodings": encodings}} if encodings else {}
        params = {
            "processId": os.getpid(),
            "rootUri": (folder / "work").as_uri(),
            "capabilities": capabilities,
            "initializationOptions": {"dataFolder": str(folder / "data"), **options},
        }
        answer = self.ask("initialize", params)
        self.notify("initialized", {})
        return answer

    def open(self, path: Path, text: str, language: str = "opencl") -> str:
        """Open a document."""
        item = {"uri": path.as_uri(), "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return path.as_uri()

    def run(self, command: str, **arguments: object) -> Any:
        """Run one of the server's commands."""
        params = {"command": f"modelblaster.{command}", "arguments": [arguments]}
        return self.ask("workspace/executeCommand", params)

    def leave(self) -> int:
        """Shut down, exit, and give the exit status."""
        self.ask("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(20)

    def _read(self) -> Message:
        assert self.process.stdout
        length = 0
        while (line := self.process.stdout.readline()).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server closed its output"
        message: Message = json.loads(self.process.stdout.read(length))
        return message


@contextmanager
def served(*arguments: str, server: Path = SCRIPTED) -> Iterator[Raw]:
    """Start a server, the one with a scripted job where no other is named; it is gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, str(server), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        try:
            yield Raw(process)
        finally:
            process.kill()
