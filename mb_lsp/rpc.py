"""A small client of the language server, for measuring it: no library's own work in the figures."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

Json = Any
Params = Mapping[str, Json]


class Client:
    """A server process and the wire to it; requests wait for their answer.

    Args:
        environment: The server's environment.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mb_lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
        )
        self._number = 0
        self.notes: list[Mapping[str, Json]] = []

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def cpu(self) -> float:
        """Give the CPU time that the server has used, in seconds, all threads together."""
        return time.clock_gettime(process_clock(self._process.pid))

    def private_bytes(self) -> int:
        """Give the memory that is the server's alone."""
        rollup = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Private_"))

    def request(self, method: str, params: Params) -> Json:
        """Ask, and wait for the answer; what the server asks meanwhile is answered with null."""
        self._number += 1
        number = self._number
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error'].get('message')}")
                return message.get("result")

    def notify(self, method: str, params: Params) -> None:
        """Tell."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def receive(self) -> Mapping[str, Json]:
        """Read the next message, answering it if the server asks something.

        Raises:
            RuntimeError: The server has ended.
        """
        assert self._process.stdout is not None
        length = 0
        while (line := self._process.stdout.readline()).strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        if not length:
            raise RuntimeError(f"the server ended with code {self._process.wait(10)}")
        message: Mapping[str, Json] = msgspec.json.decode(self._process.stdout.read(length))
        if "method" in message:
            self.notes.append(message)
            if "id" in message:
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        return message

    def close(self) -> None:
        """End the server."""
        try:
            self.request("shutdown", {})
            self.notify("exit", {})
            self._process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, message: Params) -> None:
        assert self._process.stdin is not None
        body = msgspec.json.encode(message)
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()


def process_clock(pid: int) -> int:
    """Give the id of the clock that counts another process's CPU time (Linux: clock_getcpuclockid)."""
    return (~pid << 3) | 2
