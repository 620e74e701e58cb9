"""ctxbench's side of the wire, in memory."""

import io
import json
from typing import Any

from ctxbench.run import serve
from ctxbench.strategy import FunctionStrategy
from ctxbench.wire import Wire


def initialize(settings: Any = None, **more: Any) -> tuple[str, Any]:
    return "initialize", {
        "protocol": 1,
        "model": {"id": "m", "provider": "p", "window": 1000, "max_output": 100, "newer": 1},
        "scale": 0.5,
        "settings": settings or {},
        "session": {"id": "s", "agent": None, "tools": [], "system": "You are an agent."},
        "dialects": ["openai-chat", "openai-responses", "anthropic"],
        **more,
    }


def context(*added: Any, reason: str = "turn", **more: Any) -> tuple[str, Any]:
    return "context", {
        "reason": reason,
        "now": 0,
        "added": [{"id": id, "message": m} for id, m in added],
        "new_ids": [],
        "usage": None,
        "request_tokens": None,
        **more,
    }


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def play(kind: Any, *calls: Any) -> list[Any]:
    """What the strategy writes; `calls` are (method, params) of ours, or results for its own."""
    if isinstance(kind, FunctionStrategy):
        kind = kind.type
    lines, theirs = [], 0
    for i, call in enumerate(calls):
        if isinstance(call, tuple):
            lines.append({"id": f"h{i}", "method": call[0], "params": call[1]})
        else:
            theirs += 1
            error = "code" in call
            lines.append({"id": theirs, "error" if error else "result": call})
    text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    out = io.BytesIO()
    serve(kind, Wire(io.BytesIO(text.encode()), out))
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all(s["jsonrpc"] == "2.0" for s in said)
    return [s.get("result", s.get("error", (s.get("method"), s.get("params")))) for s in said]
