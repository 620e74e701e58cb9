"""What a session says: its replies in order, where each message stands, and its facts."""

import gzip
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Message:
    """A message with all of its texts; `step` counts the replies of its window before it."""

    id: str
    role: str
    texts: list
    agent: str | None
    step: int
    turn: int
    place: int


@dataclass
class Session:
    id: str
    messages: dict = field(default_factory=dict)
    facts: list = field(default_factory=list)
    tools: dict = field(default_factory=dict)
    # Searches of the web that a reply made, by its window and its number in it.
    searches: dict = field(default_factory=dict)
    # Every text that the session records, and those that are no calls.
    recorded: list = field(default_factory=list)
    prose: list = field(default_factory=list)
    # Of these, instructions and memory files.
    standing: list = field(default_factory=list)


def arguments(value):
    """Arguments as the model wrote them: a text, or in a scenario a table that stands for one."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def session_lines(path):
    """The lines of a session file, which may be packed with gzip."""
    if path.suffix == ".zst":
        raise ValueError(
            f"{path}: packed with zstd; unpack it with `zstd -d`, or write a built-in session with "
            "`ctxbench import NAME -o FILE.jsonl`"
        )
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def scenario_lines(path):
    """The lines of a scenario file, those of the one it extends first."""
    with open(path, "rb") as f:
        scenario = tomllib.load(f)
    lines = []
    base = scenario.get("extends")
    if base is not None:
        beside = path.parent / base
        named = path.parent.parent / base / "scenario.toml"
        if base.endswith((".jsonl.gz", ".jsonl.zst")):
            lines += session_lines(beside)[1:]
        else:
            lines += scenario_lines(beside if beside.is_file() else named)
    for step in scenario.get("step", []):
        if "file" in step:
            text = (path.parent / step["file"]).read_text(encoding="utf-8")
            if step["type"] == "tools":
                step["definitions"] = json.loads(text)
            else:
                step["output" if step["type"] == "tool" else "text"] = text
        lines.append(step)
    lines += [dict(f, type="fact") for f in scenario.get("fact", [])]
    return [{"type": "session", "id": scenario["id"]}] + lines


def read(path):
    path = Path(path)
    lines = scenario_lines(path) if path.suffix == ".toml" else session_lines(path)
    session = Session("")
    replies, turns, count = {}, {}, 0
    for line in lines:
        kind, agent = line["type"], line.get("agent")
        if kind == "session":
            session.id = line["id"]
        elif kind == "fact":
            session.facts.append(line)
        elif kind in ("system", "repo_map", "memory", "file"):
            session.standing.append(line.get("text") or "")
            session.recorded += session.standing[-1:]
            session.prose += session.standing[-1:]
        elif kind == "tools":
            session.tools[agent] = line["definitions"]
        elif kind in ("user", "assistant", "tool"):
            count += 1
            texts, calls = [line.get("text"), line.get("output"), line.get("reasoning")], []
            for part in line.get("parts", []):
                if part["type"] == "call":
                    calls.append(part)
                else:
                    texts.append(part.get("text"))
            calls += line.get("calls", [])
            session.prose += [t for t in texts if t]
            session.recorded += [arguments(c["arguments"]) for c in calls]
            texts += [f"{c['name']} {arguments(c['arguments'])}" for c in calls]
            name = line.get("call_id") if kind == "tool" else line.get("id") or f"m{count}"
            if kind == "tool" and agent is None:
                agent = session.messages[name].agent if name in session.messages else None
            if kind == "user":
                turns[agent] = turns.get(agent, 0) + 1
            step, turn = replies.get(agent, 0), turns.get(agent, 0)
            texts = [t for t in texts if t]
            session.recorded += texts
            session.messages[name] = Message(name, kind, texts, agent, step, turn, count)
            if kind == "assistant":
                session.searches[agent, step] = (line.get("usage") or {}).get("web_searches", 0)
                replies[agent] = step + 1
    return session
