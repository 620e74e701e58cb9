"""ctxbench as an adapter sees it, small enough to calculate by hand.

A message has as many tokens as its text has characters, a request ten more. The model answers
what the test put into `replies`.
"""

from __future__ import annotations

import json
from typing import Any

from ctxbench import Strategy
from ctxbench.run import Program
from ctxbench.wire import MODEL, RemoteError

OVERHEAD = 10


class Bench:
    def __init__(self, kind: type[Strategy], window: int = 1000, scale: float = 1, **settings):
        #: The state: ids and messages, in order.
        self.state: list[tuple[str, dict[str, Any]]] = []
        self.replies: list[str | RemoteError] = []
        #: Params of the calls of `complete`, with their messages in full.
        self.asked: list[dict[str, Any]] = []
        self.logged: list[str] = []
        self._added: list[str] = []
        self._new_ids: list[str] = []
        self._ids = 0
        self._program = Program(kind, self)  # type: ignore[arg-type]
        self.named = self._program.answer(
            "initialize",
            {
                "protocol": 1,
                "model": {"id": "m", "provider": "p", "window": window, "max_output": 100},
                "scale": scale,
                "settings": settings,
                "session": {"id": "s", "agent": None, "tools": [], "system": "be brief"},
                "dialects": ["openai-chat", "openai-responses", "anthropic"],
            },
        )

    def add(self, *messages: dict[str, Any]) -> None:
        """Messages enter the conversation."""
        for m in messages:
            if self.named["dialect"] == "anthropic":
                m = anthropic(m)
            self._added.append(self._put(m))

    def _put(self, m: dict[str, Any]) -> str:
        self._ids += 1
        self.state.append((f"m{self._ids}", m))
        return f"m{self._ids}"

    def ask(self, reason: str = "step", **more: Any) -> list[str]:
        """A request is about to be sent: the texts that it shows."""
        self.answer = self._program.answer(
            "context",
            {
                "reason": reason,
                "now": 0,
                "added": [{"id": i, "message": m} for i, m in self.state if i in self._added],
                "new_ids": self._new_ids,
                "usage": None,
                "request_tokens": None,
                **more,
            },
        )
        self._added, self._new_ids = [], []
        before = self.state
        if "keep" in self.answer:
            self._keep(self.answer["keep"])
        shown = [text(m) if is_list(m["content"]) else m["content"] for _, m in self.state]
        if self.answer.get("scope") == "request":
            self.state, self._new_ids = before, []
        return shown

    def _keep(self, entries: list[Any]) -> None:
        before, self.state = dict(self.state), []
        for e in entries:
            if isinstance(e, str):
                self.state.append((e, before[e]))
            elif "id" in e:
                self.state.append((e["id"], e["message"]))
            else:
                self._new_ids.append(self._put(e["message"]))
        assert len({i for i, _ in self.state}) == len(self.state), entries

    def reply(self, input_tokens: int) -> None:
        """The provider counted the last request."""
        usage = {"input_tokens": input_tokens}
        self._program.answer("reply", {"usage": usage, "stop_reason": "end_turn"})

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        known = dict(self.state)
        shown = [
            known[e] if isinstance(e, str) else e["message"]
            for e in params.get("messages", list(known))
        ]
        if method == "count_tokens":
            return {"tokens": OVERHEAD + sum(len(text(m)) for m in shown)}
        assert method == "complete", method
        self.asked.append({**params, "messages": shown})
        said = self.replies.pop(0)
        if isinstance(said, RemoteError):
            raise said
        return {
            "content": [{"type": "text", "text": said}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "stop_reason": "end_turn",
        }

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.logged.append(params["message"])


def overflow() -> RemoteError:
    return RemoteError(MODEL, "prompt is too long", {"class": "overflow", "status": 400})


def is_list(content: Any) -> bool:
    return isinstance(content, list)


def text(m: Any) -> str:
    """All texts of a message, thinking and results included."""
    if not isinstance(m, dict):
        return "".join(map(text, m)) if isinstance(m, list) else m or ""
    return "".join(text(m.get(key)) for key in ("thinking", "text", "content"))


def anthropic(m: dict[str, Any]) -> dict[str, Any]:
    """A message of Chat Completions in the other dialect."""
    if m["role"] == "tool":
        result = {"tool_use_id": m["tool_call_id"], "content": m["content"]}
        return {"role": "user", "content": [{"type": "tool_result", **result}]}
    blocks = [{"type": "text", "text": m["content"]}] if m["content"] else []
    if "thinking" in m:
        blocks.insert(0, {"type": "thinking", "thinking": m["thinking"], "signature": "s"})
    for c in m.get("tool_calls", []):
        name, arguments = c["function"]["name"], json.loads(c["function"]["arguments"])
        blocks.append({"type": "tool_use", "id": c["id"], "name": name, "input": arguments})
    return {"role": m["role"], "content": blocks}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def use(id: str, result: str, name: str = "read", arguments: str = '{"p":1}') -> list[dict]:
    """A call and its result."""
    function = {"name": name, "arguments": arguments}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def talk(bench: Bench, messages: int) -> None:
    """Adds `u0`, `a1`, `u2`…"""
    bench.add(*(user(f"u{n}") if n % 2 == 0 else assistant(f"a{n}") for n in range(messages)))
