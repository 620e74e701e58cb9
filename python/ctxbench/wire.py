"""JSON-RPC 2.0 over lines: who reads, who writes, and what an error looks like."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, BinaryIO, Mapping

NO_METHOD, WRONG_PARAMS, PROGRAM, MODEL = -32601, -32602, -32603, -32000


class ProtocolError(Exception):
    """What arrived, or what was about to be sent, is not what docs/exec.md says."""


class RemoteError(Exception):
    """ctxbench answered a call with an error object."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class Closed(Exception):
    """ctxbench closed our input."""


class Wire:
    """One side of the conversation with ctxbench."""

    def __init__(self, read: BinaryIO, write: BinaryIO) -> None:
        self._read, self._write = read, write
        self._calls = 0
        # Libraries may call the model from several threads; calls are sent one at a time.
        self._lock = threading.Lock()

    def receive(self) -> dict[str, Any]:
        line = self._read.readline()
        if not line:
            raise Closed
        try:
            message = json.loads(line)
        except ValueError as e:
            raise ProtocolError(f"a line of ctxbench is not JSON: {e}: {line[:200]!r}") from None
        if not isinstance(message, dict):
            raise ProtocolError(f"a line of ctxbench is not an object: {line[:200]!r}")
        return message

    def send(self, message: dict[str, Any]) -> None:
        text = json.dumps(
            {"jsonrpc": "2.0", **message},
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
        # Half a character, which JSON cannot say in UTF-8, becomes a question mark.
        self._write.write(text.encode("utf-8", "replace") + b"\n")
        self._write.flush()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        with self._lock:
            self.send({"method": method, "params": params})

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._calls += 1
            self.send({"id": self._calls, "method": method, "params": params})
            answer = self.receive()
            if "method" in answer or answer.get("id") != self._calls:
                raise ProtocolError(
                    f"expected the answer to `{method}` (id {self._calls}), got {answer!r:.200}"
                )
            if (error := answer.get("error")) is not None:
                raise RemoteError(error["code"], error["message"], error.get("data") or {})
            result: dict[str, Any] = answer["result"]
            return result


def take_stdio() -> Wire:
    """Keeps standard input and output for the protocol.

    What the strategy, its libraries and their subprocesses print goes to standard error, and
    what they read is empty.
    """
    sys.stdout.flush()
    read, write = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return Wire(os.fdopen(read, "rb"), os.fdopen(write, "wb"))
