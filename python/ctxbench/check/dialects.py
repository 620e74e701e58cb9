"""How messages look in each dialect, and what belongs together in them."""

from __future__ import annotations

import json
from typing import Any, Iterator, NamedTuple

Json = Any
NAMES = ("openai-chat", "openai-responses", "anthropic")


class Part(NamedTuple):
    """A call or a result in a message."""

    kind: str  # "call" or "result"
    id: str


def user(dialect: str, text: str) -> list[Json]:
    if dialect == "anthropic":
        return [{"role": "user", "content": [{"type": "text", "text": text}]}]
    if dialect == "openai-responses":
        content = [{"type": "input_text", "text": text}]
        return [{"type": "message", "role": "user", "content": content}]
    return [{"role": "user", "content": text}]


def reply(dialect: str, text: str, calls: list[tuple[str, str, Json]]) -> list[Json]:
    """A reply with calls (id, tool, arguments): one message, or several items."""
    if dialect == "anthropic":
        blocks: list[Json] = [{"type": "text", "text": text}] if text else []
        for id, name, arguments in calls:
            blocks.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
        return [{"role": "assistant", "content": blocks}]
    if dialect == "openai-responses":
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items: list[Json] = []
        if text:
            items.append({"type": "message", "role": "assistant", "content": content})
        for id, name, arguments in calls:
            call = {"type": "function_call", "call_id": id, "name": name}
            items.append({**call, "arguments": json.dumps(arguments)})
        return items
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for id, n, a in calls
        ]
    return [message]


def result(dialect: str, call: str, output: str) -> Json:
    if dialect == "anthropic":
        block = {"type": "tool_result", "tool_use_id": call, "content": output}
        return {"role": "user", "content": [block]}
    if dialect == "openai-responses":
        return {"type": "function_call_output", "call_id": call, "output": output}
    return {"role": "tool", "tool_call_id": call, "content": output}


def parts(dialect: str, message: Json) -> Iterator[Part]:
    """Calls and results of a message that `problem` finds no fault with."""
    if dialect == "openai-responses":
        if message.get("type") == "function_call":
            yield Part("call", message["call_id"])
        elif message.get("type") == "function_call_output":
            yield Part("result", message["call_id"])
    elif dialect == "anthropic":
        content = message["content"]
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_use":
                yield Part("call", block["id"])
            elif block.get("type") == "tool_result":
                yield Part("result", block["tool_use_id"])
    elif message["role"] == "tool":
        yield Part("result", message["tool_call_id"])
    else:
        for call in message.get("tool_calls") or []:
            yield Part("call", call["id"])


def problem(dialect: str, message: Json) -> str | None:
    """What is wrong with a message, or None."""
    if not isinstance(message, dict):
        return f"is {type(message).__name__}, expected an object"
    if "id" in message and dialect != "openai-responses":
        return 'has a field `id`; the id stands beside the message: {"id": …, "message": …}'
    check = {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic}
    return check[dialect](message)


def _chat(m: Json) -> str | None:
    role, content = m.get("role"), m.get("content")
    if role not in ("user", "assistant", "tool", "system", "developer"):
        return f"has the role {role!r}, expected user, assistant or tool"
    calls = m.get("tool_calls")
    if content is None and not (role == "assistant" and calls):
        return "has no content"
    if content is not None and not _is_content(content, ("text", "image_url", "refusal", "file")):
        return f"has a content that Chat Completions does not know: {str(content)[:80]}"
    if role == "tool" and not isinstance(m.get("tool_call_id"), str):
        return "has the role tool and no `tool_call_id`"
    if calls is not None and role != "assistant":
        return f"has the role {role!r} and `tool_calls`"
    for call in calls or []:
        f = call.get("function") if isinstance(call, dict) else None
        if not isinstance(f, dict) or not isinstance(call.get("id"), str):
            return "has a tool call without `id` or `function`"
        if not isinstance(f.get("name"), str) or not isinstance(f.get("arguments"), str):
            return "has a tool call whose `name` or `arguments` is no text"
    return None


def _responses(m: Json) -> str | None:
    kind = m.get("type", "message")
    texts: tuple[str, ...]
    if kind == "message":
        if m.get("role") not in ("user", "assistant", "system", "developer"):
            return f"has the role {m.get('role')!r}, expected user or assistant"
        texts = ("input_text", "output_text", "input_image", "input_file", "refusal")
        if not _is_content(m.get("content"), texts):
            return f"has a content that Responses does not know: {str(m.get('content'))[:80]}"
        return None
    if kind == "function_call":
        texts = ("call_id", "name", "arguments")
    elif kind == "function_call_output":
        texts = ("call_id",)
        if not isinstance(m.get("output"), (str, list)):
            return "is a function_call_output without `output`"
    elif kind == "reasoning":
        texts = ()
    else:
        return f"is an item of type {kind!r}, which ctxbench does not take"
    missing = [t for t in texts if not isinstance(m.get(t), str)]
    return f"is a {kind} whose `{missing[0]}` is no text" if missing else None


def _anthropic(m: Json) -> str | None:
    if m.get("role") not in ("user", "assistant"):
        return f"has the role {m.get('role')!r}, expected user or assistant"
    content = m.get("content")
    known = {
        "user": ("text", "image", "document", "tool_result"),
        "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
    }[m["role"]]
    if not _is_content(content, known):
        return f"has a content that the Messages API does not know: {str(content)[:80]}"
    for block in content if isinstance(content, list) else []:
        if block["type"] == "tool_use" and not (
            isinstance(block.get("id"), str)
            and isinstance(block.get("name"), str)
            and isinstance(block.get("input"), dict)
        ):
            return "has a tool_use without `id`, `name` or `input`"
        if block["type"] == "tool_result" and not isinstance(block.get("tool_use_id"), str):
            return "has a tool_result without `tool_use_id`"
    return None


def _is_content(content: Json, known: tuple[str, ...]) -> bool:
    if isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(p, dict)
        and p.get("type") in known
        and ("text" not in p["type"] or isinstance(p.get("text"), str))
        for p in content
    )
