"""A program under test: its lines, its limits, its end."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from typing import Any, Callable, Sequence


class Broken(Exception):
    """The program cannot go on: what ends a row."""


#: Answers a call of the program with a result, or raises `Failure`.
Answerer = Callable[[str, Any], dict[str, Any]]


class Failure(Exception):
    """An error object as the answer to a call of the program."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Process:
    """A running program."""

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self._timeout = timeout
        self._calls = 0
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._errors: deque[str] = deque(maxlen=20)
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ended together with all that it starts.
                start_new_session=True,
            )
        except OSError as e:
            raise Broken(f"`{command[0]}` cannot be started: {e.strerror}") from None
        self._readers = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_answers(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._child.stderr is not None
        for line in self._child.stderr:
            self._errors.append(line.decode("utf-8", "replace").rstrip())

    def call(self, method: str, params: dict[str, Any], answer: Answerer) -> dict[str, Any]:
        """Calls the program; what it calls meanwhile is answered."""
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": params})
        while True:
            message = self._receive(method)
            if "method" in message:
                self._answer(message, answer)
            elif message.get("id") != self._calls:
                raise Broken(
                    f"an answer with id {message.get('id')!r}, expected {self._calls}, the id of "
                    f"the call `{method}`"
                )
            elif (error := message.get("error")) is not None:
                raise Broken(f"an error as the answer: {said(error)}")
            elif not isinstance(message.get("result"), dict):
                raise Broken(f"an answer without an object `result`: {clip(message)}")
            else:
                result: dict[str, Any] = message["result"]
                return result

    def _answer(self, call: dict[str, Any], answer: Answerer) -> None:
        method = call["method"]
        if "id" not in call and method != "log":
            raise Broken(f"the call `{method}` has no `id`; only `log` may be sent without")
        try:
            reply = {"result": answer(method, call.get("params", {}))}
        except Failure as e:
            reply = {"error": e.error}
        if "id" in call:
            self._send({"id": call["id"], **reply})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line.encode() + b"\n")
            self._child.stdin.flush()
        except OSError:
            # Its last message is more useful than the fact that it ended.
            self._receive(message.get("method", "a call"))
            raise Broken("it ended and reads no more") from None

    def _receive(self, method: str) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=self._timeout)
        except queue.Empty:
            raise Broken(f"no answer for {self._timeout:g} s") from None
        if line is None:
            code = self._child.wait()
            if code == 0 and method == "initialize":
                raise Broken(
                    "it ended before it answered; does the file end with `NAME.run()` "
                    "(TypeScript: `run(NAME)`)?"
                )
            raise Broken(f"it ended (exit code {code}) instead of answering `{method}`")
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise Broken(
                f"a line on standard output that is not JSON-RPC 2.0: {clip(line)}; print to "
                "standard error instead"
            )
        return message

    def end(self) -> str | None:
        """Waits for the end after `shutdown`; says so if there is none."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.close()
            self._child.wait(self._timeout)
        except OSError:
            pass
        except subprocess.TimeoutExpired:
            return f"it still runs {self._timeout:g} s after `shutdown`"
        return None

    def kill(self) -> list[str]:
        """Ends whatever still runs; the last lines of standard error."""
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._child.wait()
        for reader in self._readers:
            reader.join(1)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            try:
                pipe.close()  # type: ignore[union-attr]
            except OSError:
                pass
        return list(self._errors)


def said(error: Any) -> str:
    if isinstance(error, dict) and "message" in error:
        return f"{error['message']} (code {error.get('code')})"
    return clip(error)


def clip(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace").rstrip()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else text[:157] + "…"
