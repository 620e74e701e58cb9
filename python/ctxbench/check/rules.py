"""The rules for what a program says, each broken one as a sentence."""

from __future__ import annotations

from typing import Any, Iterable

from . import dialects
from .process import clip

Json = Any
KINDS = ("clear", "truncate", "drop", "summarise")
MOMENTS = ("admit", "reply", "turn_end", "after_turn", "error", "rewind", "idle", "manual")


class View:
    """The conversation of the script, by ids."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.messages: dict[str, Json] = {}

    def named(self, entry: Json) -> Json:
        """The message that an entry shows."""
        return self.messages[entry] if isinstance(entry, str) else entry["message"]

    def entry_problems(self, entry: Json) -> Iterable[str]:
        """What is wrong with one entry of a list of messages."""
        if isinstance(entry, str):
            if entry not in self.messages:
                yield f"names {entry!r}, which does not stand in the conversation"
            return
        if not isinstance(entry, dict) or "message" not in entry:
            yield f'holds {clip(entry)}, expected "id", {{"id", "message"}} or {{"message"}}'
            return
        if extra := set(entry) - {"id", "message"}:
            yield f"holds an entry with the unknown field {sorted(extra)[0]!r}"
        id = entry.get("id")
        what = "a new text" if id is None else f"the altered message {id!r}"
        if "id" in entry and id not in self.messages:
            yield f"alters {id!r}, which does not stand in the conversation"
            return
        if wrong := dialects.problem(self.dialect, entry["message"]):
            yield f"holds {what} that {wrong}"
        elif id is not None:
            had = sorted(dialects.parts(self.dialect, self.messages[id]))
            has = sorted(dialects.parts(self.dialect, entry["message"]))
            if had != has:
                yield (
                    f"alters {id!r} so that its calls and results are {shown(has)}; they stay "
                    f"{shown(had)}"
                )

    def list_problems(self, entries: Json) -> list[str]:
        """What is wrong with a list of messages."""
        if not isinstance(entries, list):
            return [f"is {clip(entries)}, expected a list"]
        if not entries:
            return ["is empty; a request shows at least one message"]
        return [p for e in entries for p in self.entry_problems(e)]

    def keep_problems(self, entries: Json) -> list[str]:
        """What is wrong with the list of an answer."""
        found = [f"`keep` {p}" for p in self.list_problems(entries)]
        if found:
            return found
        ids = [e if isinstance(e, str) else e.get("id") for e in entries]
        found += [
            f"`keep` names {id!r} twice" for id in dict.fromkeys(ids) if id and ids.count(id) > 1
        ]
        calls: set[str] = set()
        for part in (p for e in entries for p in dialects.parts(self.dialect, self.named(e))):
            if part.kind == "call":
                calls.add(part.id)
            elif part.id in calls:
                calls.remove(part.id)
            else:
                found.append(f"`keep` shows the result of call {part.id!r} without the call")
        answered = {
            p.id
            for m in self.messages.values()
            for p in dialects.parts(self.dialect, m)
            if p.kind == "result"
        }
        for id in sorted(calls & answered):
            found.append(f"`keep` shows the call {id!r} without its result")
        return found

    def answer_problems(self, answer: Json) -> list[str]:
        """What is wrong with an answer to `context`."""
        parts = {"compaction", "trigger", "breakpoints", "params"}
        known = {"keep", "scope", "unchanged", "fail", *parts}
        found = [f"has the unknown field {k!r}" for k in answer if k not in known]
        if "keep" in answer:
            found += self.keep_problems(answer["keep"])
            if answer.get("unchanged"):
                found.append("has `keep` and `unchanged`; only one of them can hold")
        elif answer.get("unchanged") is not True and "fail" not in answer:
            found.append('has none of `keep`, `"unchanged": true` and `fail`')
        if answer.get("scope", "state") not in ("state", "request"):
            found.append(f"has the scope {answer['scope']!r}, expected state or request")
        for name, check in PARTS.items():
            if name in answer:
                found += check(self, answer[name], answer.get("keep"))
        return found


def compaction(view: View, given: Json, keep: Json) -> Iterable[str]:
    if not isinstance(given, dict):
        yield f"`compaction` is {clip(given)}, expected an object"
        return
    if "kind" in given and given["kind"] not in KINDS:
        yield f"`compaction.kind` is {given['kind']!r}, expected one of {', '.join(KINDS)}"
    if "mechanism" in given and not is_name(given["mechanism"]):
        yield f"`compaction.mechanism` is {clip(given['mechanism'])}, expected a name"
    ids = given.get("ids", [])
    if not isinstance(ids, list):
        yield f"`compaction.ids` is {clip(ids)}, expected a list of ids"
    else:
        for id in ids:
            if id not in view.messages:
                yield f"`compaction.ids` names {id!r}, which does not stand in the conversation"


def trigger(_: View, given: Json, keep: Json) -> Iterable[str]:
    if not isinstance(given, dict) or not is_name(given.get("check")):
        yield f"`trigger` is {clip(given)}, expected `check` (a name), `believed` and `limit`"
        return
    for name in ("believed", "limit"):
        if not is_count(given.get(name)):
            yield f"`trigger.{name}` is {given.get(name)!r}, expected a whole number of tokens"


def breakpoints(view: View, given: Json, keep: Json) -> Iterable[str]:
    if not isinstance(given, list):
        yield f"`breakpoints` is {clip(given)}, expected a list"
        return
    shown = set(view.messages)
    if isinstance(keep, list):
        shown = {e if isinstance(e, str) else e.get("id") for e in keep}
    for b in given:
        if not isinstance(b, dict) or "id" not in b:
            yield f"`breakpoints` holds {clip(b)}, expected an object with `id`"
        elif b["id"] != "system" and b["id"] not in shown:
            yield f"`breakpoints` names {b['id']!r}, which the request does not show"
        elif b.get("ttl", "5m") not in ("5m", "1h"):
            yield f"`breakpoints` has the ttl {b['ttl']!r}, expected 5m or 1h"


def params(_: View, given: Json, keep: Json) -> Iterable[str]:
    if not isinstance(given, dict):
        yield f"`params` is {clip(given)}, expected an object"
        return
    for name in set(given) - {"max_tokens", "effort"}:
        yield f"`params` has the unknown field {name!r}, expected `max_tokens` and `effort`"
    if "max_tokens" in given and not is_count(given["max_tokens"]):
        yield f"`params.max_tokens` is {given['max_tokens']!r}, expected a whole number"


PARTS = {
    "compaction": compaction,
    "trigger": trigger,
    "breakpoints": breakpoints,
    "params": params,
}


def initialize_problems(result: Json) -> list[str]:
    """What is wrong with the answer to `initialize`."""
    found = [
        f"`{n}` is {result.get(n)!r}, expected a text"
        for n in ("name", "version")
        if not is_name(result.get(n))
    ]
    if result.get("dialect") not in dialects.NAMES:
        offered = ", ".join(dialects.NAMES)
        found.append(f"`dialect` is {result.get('dialect')!r}, expected one of {offered}")
    moments = result.get("moments")
    if not isinstance(moments, list):
        found.append(f"`moments` is {moments!r}, expected a list")
    else:
        for m in moments:
            if m not in MOMENTS:
                found.append(f"`moments` holds {m!r}, expected names among {', '.join(MOMENTS)}")
    return found


def complete_problems(view: View, given: Json) -> list[str]:
    """What is wrong with a question to the model."""
    found = [f"`messages` {p}" for p in view.list_problems(given.get("messages"))]
    known = {"messages", "system", "tools", "max_tokens", "model", "background"}
    found += [f"has the unknown field {k!r}" for k in given if k not in known]
    system = given.get("system")
    if system is not None and system is not True and not isinstance(system, str):
        found.append(f"`system` is {clip(system)}, expected a text or true")
    if not isinstance(given.get("background", False), bool):
        found.append(f"`background` is {clip(given['background'])}, expected true or false")
    tools = given.get("tools", False)
    if isinstance(tools, list):
        found += [p for t in tools for p in tool_problems(t)]
        if tools and not found and text_field(tools[0]["input_schema"]) is None:
            found.append(
                f"the tool {tools[0]['name']!r} needs a required field of type string or array, "
                "which gets the text of the model"
            )
    elif not isinstance(tools, bool):
        found.append(f"`tools` is {clip(tools)}, expected true, false or a list of tools")
    if given.get("max_tokens") is not None and not is_count(given["max_tokens"]):
        found.append(f"`max_tokens` is {given['max_tokens']!r}, expected a whole number")
    if given.get("model", "main") not in ("main", "summary"):
        found.append(f"`model` is {given['model']!r}, expected main or summary")
    return found


def tool_problems(tool: Json) -> Iterable[str]:
    """What is wrong with a tool of the program's own."""
    known = {"name", "description", "input_schema"}
    if not isinstance(tool, dict) or not is_name(tool.get("name")):
        yield f"`tools` holds {clip(tool)}, expected an object with `name` and `input_schema`"
        return
    if extra := set(tool) - known:
        yield f"`tools` holds {tool['name']!r} with the unknown field {sorted(extra)[0]!r}"
    if not isinstance(tool.get("description", ""), str):
        yield f"`tools` holds {tool['name']!r}, whose `description` is no text"
    if not isinstance(tool.get("input_schema"), dict):
        yield f"`tools` holds {tool['name']!r} without an object `input_schema`"


def text_field(schema: Json) -> tuple[str, bool] | None:
    """The field that gets the text of the model, and whether it is a list."""
    required, fields = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(fields, dict):
        return None
    for name in required:
        kind = fields.get(name)
        if isinstance(kind, dict) and kind.get("type") in ("string", "array"):
            return name, kind["type"] == "array"
    return None


def is_name(value: Json) -> bool:
    return isinstance(value, str) and bool(value)


def is_count(value: Json) -> bool:
    return type(value) is int and value >= 0


def shown(parts: list[dialects.Part]) -> str:
    return ", ".join(f"{p.kind} {p.id}" for p in parts) or "none"
