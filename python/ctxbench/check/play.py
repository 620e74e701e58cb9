"""A scripted session: everything that can happen to a program, in one conversation."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Sequence

from . import dialects, rules
from .process import Broken, Failure, Process

Json = Any
#: Tokens. Small, so that limits are reached within the script.
WINDOW = 8_000
MAX_OUTPUT = 1_000
PRICES = {
    "input": 3,
    "cache_read": 0.3,
    "cache_write_5m": 3.75,
    "cache_write_1h": 6,
    "output": 15,
}
CACHE = {"lifetime_5m_ms": 300_000, "lifetime_1h_ms": 3_600_000, "min_tokens": 1024}
SYSTEM = "You are a coding agent. The working folder is /app."
TOOLS = [
    {
        "name": "shell",
        "description": "Runs a command.",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    }
]
SUMMARY = "The login page was fixed; the test of the session cookie still fails."


@dataclass
class Report:
    """What came of a run of the script."""

    name: str = ""
    problems: list[str] = field(default_factory=list)
    # Remarks that are not errors.
    notes: list[str] = field(default_factory=list)
    #: Everything the program said, for comparing two runs.
    said: list[Json] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    calls: int = 0
    compactions: int = 0
    questions: int = 0


class Over(Exception):
    """An answer with which ctxbench would end the row."""


class Player:
    """Plays the script against a command."""

    def __init__(
        self, command: Sequence[str], settings: Json, timeout: float, model_fails: bool = False
    ) -> None:
        self._command, self._settings, self._timeout = command, settings, timeout
        self._model_fails = model_fails
        self.report = Report()
        self._process: Process
        self._view: rules.View
        self._moments: list[str] = []
        self._at = "start"
        self._now = 0
        self._messages = self._texts = self._tasks = 0
        self._added: list[Json] = []
        self._new_ids: list[str] = []
        self._usage: Json = None
        self._tokens: int | None = None

    def run(self) -> Report:
        try:
            self._play()
        except Broken as e:
            self.report.problems.append(f"{self._at}: {e}")
        except Over:
            self.report.notes.append(f"with {self._at} a row would end, so nothing more was asked")
        if hasattr(self, "_process"):
            errors = self._process.kill()
            if self.report.problems:
                self.report.stderr = errors
        return self.report

    # The script.

    def _play(self) -> None:
        self._start()
        self._user("Fix the login page. Never touch the file payments.py.")
        self._context("turn")
        self._step("I look around.", [("ls -R", "app.py\nlogin.py\n"), ("cat login.py", LONG)])
        self._context("step")
        for attempt, (kind, status) in enumerate([("rate_limited", 429), ("server", 500)], 1):
            self._error(kind, status, attempt)
            self._context("step")  # The request goes again, and is asked for again.
        self._step("", [("pytest -q", "2 failed")])
        self._context("step")
        self._reply("The cookie is not set.", [], "end_turn")
        self._turn_end()
        self._user('Then set it. Ünïcödé ✓ "quotes"\nand lines.')
        self._context("turn")
        for i in range(14):
            self._step(f"Step {i}.", [(f"sed -n {i}p login.py", f"line {i}: " + "x = 1; " * 60)])
            self._context("step")
        self._overflow()
        self._reply("Done.", [], "end_turn")
        self._turn_end()
        self._now += 3_600_000
        if "idle" in self._moments:
            self._context("idle", idle_ms=3_600_000)
        if "manual" in self._moments:
            self._context("manual", instructions=None)
            self._context("manual", instructions="Keep the names of files.")
        self._user("Now the logout page.")
        self._context("turn")
        back_to = self._messages
        self._step("I read it.", [("cat logout.py", "pass"), ("cat urls.py", "urls = []")])
        self._context("step")
        if "rewind" in self._moments:
            self._rewind(f"m{back_to}")
            self._user("No, the start page.")
            self._context("turn")
        self._reply("It is fine as it is.", [], "end_turn")
        self._turn_end()
        self._stop()
        self._resume()

    def _start(self) -> None:
        self._process = Process(self._command, self._timeout)
        dialect = getattr(getattr(self, "_view", None), "dialect", None)
        result = self._call(
            "initialize",
            {
                "protocol": 1,
                "model": {
                    "id": "check-model",
                    "provider": "check",
                    "window": WINDOW,
                    "max_output": MAX_OUTPUT,
                    "prices": PRICES,
                    "cache": CACHE,
                },
                "scale": WINDOW / 200_000,
                "settings": self._settings,
                "session": {"id": "check", "agent": None, "tools": TOOLS, "system": SYSTEM},
                "dialects": list(dialects.NAMES),
            },
        )
        wrong = rules.initialize_problems(result)
        self._blame(wrong)
        if wrong:
            raise Broken("without a right answer to `initialize` nothing more is asked")
        if dialect not in (None, result["dialect"]):
            self._blame([f"`dialect` is {result['dialect']!r}, the first time it was {dialect!r}"])
        self.report.name = f"{result['name']} {result['version']}, {result['dialect']}"
        if dialect is None:
            self._view = rules.View(result["dialect"])
        self._moments = result["moments"]

    def _user(self, text: str) -> None:
        self._now += 60_000
        for m in dialects.user(self._view.dialect, text):
            self._enter(m)

    def _step(self, text: str, calls: list[tuple[str, str]]) -> None:
        """A reply with calls (command, output), and their results."""
        ids = [f"call_{self._messages}_{i}" for i in range(len(calls))]
        made = [(id, "shell", {"command": c}) for id, (c, _) in zip(ids, calls)]
        self._reply(text, made, "tool_use")
        for (id, name, arguments), (_, output) in zip(made, calls):
            call = {"name": name, "arguments": arguments}
            self._enter(dialects.result(self._view.dialect, id, output), call)

    def _reply(self, text: str, calls: Json, stop_reason: str) -> None:
        self._now += 5_000
        self._usage = {
            "input_tokens": self._tokens or 0,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "output_tokens": 50,
            "reasoning_tokens": 0,
        }
        if "reply" in self._moments:
            self._empty("reply", {"usage": self._usage, "stop_reason": stop_reason})
        for m in dialects.reply(self._view.dialect, text, calls):
            self._enter(m)

    def _turn_end(self) -> None:
        if "turn_end" in self._moments:
            self._empty("turn_end", {"usage": self._usage, "stop_reason": "end_turn"})
        if "after_turn" in self._moments:
            self._context("after_turn")

    def _enter(self, message: Json, call: Json = None) -> None:
        self._messages += 1
        id = f"m{self._messages}"
        if call and "admit" in self._moments:
            result = self._call("admit", {"id": id, "message": message, "call": call})
            if "message" in result:
                now = result["message"]
                wrong = dialects.problem(self._view.dialect, now)
                if wrong:
                    self._blame([f"holds a message that {wrong}"])
                elif [*dialects.parts(self._view.dialect, now)] != [
                    *dialects.parts(self._view.dialect, message)
                ]:
                    self._blame(["holds a result of another call"])
                else:
                    message = now
        self._added.append({"id": id, "message": message})

    def _context(self, reason: str, **more: Json) -> bool:
        """Asks for the context; whether something changed."""
        for a in self._added:
            self._view.messages[a["id"]] = a["message"]
        result = self._call(
            "context",
            {
                "reason": reason,
                "now": self._now,
                "added": self._added,
                "new_ids": self._new_ids,
                "usage": self._usage,
                "request_tokens": self._tokens,
                **more,
            },
        )
        self._added, self._new_ids = [], []
        wrong = self._view.answer_problems(result)
        self._blame(wrong)
        if wrong:
            # The program takes its answer for the state, so later messages would mislead.
            raise Over
        if "keep" not in result:
            self._tokens = self._count(list(self._view.messages))
            return False
        self._tokens = self._count(result["keep"])
        return self._take(result)

    def _take(self, result: Json) -> bool:
        """Takes an answer over, as ctxbench does."""
        now: dict[str, Json] = {}
        for entry in result["keep"]:
            if isinstance(entry, str):
                now[entry] = self._view.messages[entry]
                continue
            id = entry.get("id")
            if id is None:
                self._texts += 1
                id = f"t{self._texts}"
                self._new_ids.append(id)
            now[id] = entry["message"]
        changed = list(now.items()) != list(self._view.messages.items())
        self.report.compactions += changed
        if result.get("scope", "state") == "state":
            self._view.messages = now
        return changed

    def _overflow(self) -> None:
        for attempt in (1, 2):
            if self._error("overflow", 400, attempt):
                return
            before = self._tokens or 0
            if not self._context("overflow", attempt=attempt):
                self.report.notes.append(
                    "an overflow ends the turn: the answer to `context` with reason overflow "
                    "changes nothing"
                )
                return
            if (self._tokens or 0) >= before:
                self.report.notes.append(f"{self._at}: the prompt is no smaller than before")
            self._context("step")

    def _error(self, kind: str, status: int, attempt: int) -> Json:
        if "error" not in self._moments:
            return None
        words = f"scripted failure {attempt}"
        params = {"class": kind, "status": status, "message": words, "attempt": attempt}
        result = self._call("error", params)
        if result and set(result) not in ({"again"}, {"fail"}):
            self._blame([f"is {result}, expected {{}}, {{again: true}} or {{fail: text}}"])
        elif "again" in result and result["again"] is not True:
            self._blame([f"`again` is {result['again']!r}, expected true"])
        elif "fail" in result and not isinstance(result["fail"], str):
            self._blame([f"`fail` is {result['fail']!r}, expected a text"])
        return result

    def _rewind(self, to: str) -> None:
        self._empty("rewind", {"to": to})
        last = int(to[1:])
        # Texts of the program replace earlier messages; the script adds none after `to`.
        self._view.messages = {
            id: m for id, m in self._view.messages.items() if id[0] == "t" or int(id[1:]) <= last
        }
        self._added = []

    def _stop(self) -> None:
        self._empty("shutdown", {})
        if wrong := self._process.end():
            self._blame([wrong])
        self._process.kill()

    def _resume(self) -> None:
        """Another process goes on with what is left."""
        self._start()
        self._added = [{"id": id, "message": m} for id, m in self._view.messages.items()] + [
            a for a in self._added if a["id"] not in self._view.messages
        ]
        self._new_ids = []
        self._usage = self._tokens = None
        self._user("Go on.")
        self._context("resume")
        self._step("I go on.", [("pytest -q", "all passed")])
        self._context("step")
        self._stop()

    # Calls in both directions.

    def _call(self, method: str, params: Json) -> Json:
        self.report.calls += 1
        reason = f" ({params['reason']})" if "reason" in params else ""
        self._at = f"call {self.report.calls}, `{method}`{reason}"
        result = self._process.call(method, params, self._answer)
        self.report.said.append(result)
        return result

    def _empty(self, method: str, params: Json) -> None:
        result = self._call(method, params)
        if result:
            self._blame([f"is {result}, expected {{}}"])

    def _answer(self, method: str, params: Json) -> Json:
        self.report.said.append({method: params})
        place = f"{self._at}, its call `{method}`"
        if not isinstance(params, dict):
            self.report.problems.append(f"{place}: `params` is no object")
            raise Failure(-32602, "params must be an object")
        if method == "log":
            if not isinstance(params.get("message"), str):
                self.report.problems.append(f"{place}: `message` is no text")
            return {}
        if not hasattr(self, "_view"):
            self.report.problems.append(f"{place}: nothing but `log` before the first `context`")
            raise Failure(-32602, "there is no conversation yet")
        if method == "count_tokens":
            entries = params.get("messages", list(self._view.messages))
            if params.get("messages") != []:
                self._refuse(place, self._view.list_problems(entries), "`messages` ")
            return {"tokens": self._count(entries)}
        if method == "complete":
            self._refuse(place, rules.complete_problems(self._view, params), "")
            self.report.questions += 1
            if params.get("background"):
                self._tasks += 1
                return {"task": self._tasks}
            return self._model(params.get("tools"))
        if method == "collect":
            task = params.get("task")
            if not isinstance(task, int) or not 0 < task <= self._tasks:
                self._refuse(place, [f"`task` is {task!r}, expected one that was started"], "")
            return self._model() if params.get("wait") else {"pending": True}
        self._refuse(place, ["there is no such method"], "", code=-32601)
        raise AssertionError("refused above")

    def _refuse(self, place: str, wrong: list[str], what: str, code: int = -32602) -> None:
        if wrong:
            self.report.problems += [f"{place}: {what}{w}" for w in wrong]
            raise Failure(code, f"{what}{wrong[0]}")

    def _model(self, tools: Json = None) -> Json:
        if self._model_fails:
            raise Failure(-32000, "the model is overloaded", {"class": "server", "status": 529})
        usage = {
            "input_tokens": 1_000,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "output_tokens": 40,
            "reasoning_tokens": 0,
        }
        content: Json = [{"type": "text", "text": SUMMARY}]
        stop = "end_turn"
        if isinstance(tools, list) and tools:
            field, is_list = rules.text_field(tools[0]["input_schema"])  # type: ignore[misc]
            stop = "tool_use"
            given = {field: [SUMMARY] if is_list else SUMMARY}
            content = [
                {"type": "tool_use", "id": "call_1", "name": tools[0]["name"], "input": given}
            ]
        return {"content": content, "usage": usage, "stop_reason": stop}

    def _count(self, entries: Json) -> int:
        """A rough count; what matters is that it grows with what is shown."""
        shown = json.dumps([self._view.named(e) for e in entries], ensure_ascii=False)
        return 200 + len(shown) // 4

    def _blame(self, wrong: Sequence[str]) -> None:
        self.report.problems += [f"{self._at}: {w}" for w in wrong]


LONG = "\n".join(f"{i}: def handler_{i}(request): return redirect('/login')" for i in range(200))
