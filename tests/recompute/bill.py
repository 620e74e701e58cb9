#!/usr/bin/env python3
"""Recomputes the recorded dollars of recordings from their raw files and the price table, without any code of ctxbench.

    tests/recompute/bill.py CTXBENCH PATH...

Reads each file as its program documents it, bills each call once, and compares the sum of each path with that of
`CTXBENCH list sessions PATH --json`. Prints a line for each, and exits with 1 if one differs by more than rounding. Needs
Python 3.11.
"""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
MODELS = HERE.parent.parent / "core" / "src" / "model"
PER = 1_000_000
# No prompt has so many tokens.
IMPOSSIBLE = 1_375_000
# Models that have no price under their own name, with those that replace them.
STAND_INS = {"gemini-3-pro": "gemini-3-pro-preview"}


def bare(name):
    """A model's name without gateway, region, version and date."""
    name = re.split(r"[@:\[]", (name or "").lower().rsplit("/", 1)[-1])[0]
    name = re.sub(r"^(?:[a-z-]+\.)+", "", name)
    return re.sub(r"-v\d+$|-\d{8}.*$|-\d{4}-\d\d-\d\d.*$", "", re.sub(r"-v\d+$", "", name))


class Prices:
    def __init__(self):
        models = tomllib.loads((MODELS / "models.toml").read_text())["model"]
        self.of = {m["name"]: (m["provider"], m["prices"]) for m in models}
        for row in json.loads((MODELS / "litellm" / "others.json").read_text()):
            name, (into, write, hour, read, out, long) = row[0], row[5:11]
            prices = {"input": into, "write_5m": write, "write_1h": hour, "read": read, "output": out}
            self.of.setdefault(name, ("", {**prices, "long": long}))
        self.bare = {}
        for name in self.of:
            self.bare.setdefault(bare(name), name)
        self.rules = tomllib.loads((MODELS / "terms.toml").read_text())["rule"]

    def find(self, name):
        # GitHub writes claude-sonnet-4.5.
        plain = re.sub(r"^(claude.*\d)\.(?=\d)", r"\1-", STAND_INS.get(bare(name), bare(name)))
        return name if name in self.of else self.bare.get(plain)

    def usd(self, model, c):
        name = model and self.find(model)
        if name is None:
            return c.get("told")
        provider, p = self.of[name]
        read, write, hour = c.get("read", 0), c.get("write", 0), c.get("hour", 0)
        prompt = c["input"] + read + write + hour
        into = out = 1.0
        for tier in p.get("long", []):
            from_, into_factor, out_factor = (
                (tier["from"], tier["input_factor"], tier["output_factor"]) if isinstance(tier, dict) else tier
            )
            if prompt > from_:
                into, out = into_factor, out_factor
        usd = c["input"] * p["input"] + read * p["read"]
        usd += write * p.get("write_5m", p["input"]) + hour * p.get("write_1h", p["input"])
        usd = (into * usd + out * c["output"] * p["output"]) / PER
        named = lambda rule: not rule.get("models") or re.sub(r"-20\d\d.*", "", name) in rule["models"] or name in rule["models"]
        rule = lambda term: next((r for r in self.rules if (r["provider"], r["term"]) == (provider, term) and named(r)), {})
        for term in c.get("terms", []):
            usd *= rule(term).get("factor", 1.0)
        return usd + c.get("searches", 0) * rule("search").get("usd", 0.0)


def lines(path):
    decoder = json.JSONDecoder()
    for line in path.read_text(errors="replace").splitlines():
        at = 0
        while (at := line.find("{", at)) >= 0:
            try:
                value, at = decoder.raw_decode(line, at)
                yield value
            except ValueError:
                # The rest may have a whole object after the one that breaks off.
                at = line.find('{"', at + 1)
                if at < 0:
                    break


def anthropic(u):
    made = u.get("cache_creation") or {}
    hour = made.get("ephemeral_1h_input_tokens", 0)
    terms = [t for t in (u.get("speed"), u.get("service_tier"), u.get("inference_geo")) if t]
    return {
        "input": u.get("input_tokens", 0), "output": u.get("output_tokens", 0), "hour": hour,
        "read": u.get("cache_read_input_tokens") or 0, "write": (u.get("cache_creation_input_tokens") or 0) - hour,
        "terms": terms, "searches": (u.get("server_tool_use") or {}).get("web_search_requests", 0),
    }


def openai(u):
    details = u.get("prompt_tokens_details") or u.get("input_tokens_details") or {}
    read = details.get("cached_tokens", 0) or 0
    prompt = u.get("prompt_tokens", u.get("input_tokens", 0))
    return {"input": prompt - read, "read": read, "output": u.get("completion_tokens", u.get("output_tokens", 0))}


def any_api(u):
    return anthropic(u) if any(k.startswith("cache_") for k in u) else openai(u)


def with_inside(key, model, u):
    """A call, or the requests that the provider made inside it."""
    if not u.get("iterations"):
        return [(key, model, anthropic(u))]
    terms = {k: u.get(k) for k in ("speed", "service_tier", "inference_geo")}
    inside = [(f"{key}/{n}", i.get("model", model), anthropic({**terms, **i})) for n, i in enumerate(u["iterations"])]
    inside[-1][2]["searches"] = anthropic(u)["searches"]
    return inside


def claude_code(path):
    last = {}
    for o in lines(path):
        m = o.get("message") or {}
        if o.get("type") == "progress":
            o = (o.get("data") or {}).get("message") or {}
            m = o.get("message") or {}
        u = m.get("usage") if isinstance(m, dict) else None
        if o.get("type") != "assistant" or not u or o.get("isApiErrorMessage") or m.get("model") == "<synthetic>":
            continue
        last[(m.get("id"), o.get("requestId"))] = (m.get("model"), u)
    for key, (model, u) in last.items():
        yield from with_inside(str(key), model, u)


def codex(path):
    model, before, records, own_from, searches = None, (), set(), None, 0
    for o in lines(path):
        p = o.get("payload") or {}
        if o.get("type") == "session_meta" and own_from is None:
            own_from = p.get("subagent_history_start_ordinal") or 0
        searches += p.get("type") == "web_search_call" and (p.get("action") or {}).get("type", "search") == "search"
        if o.get("type") == "turn_context":
            model = p.get("model") or model
        if o.get("type") == "token_usage_record":
            u, key = p["usage"], p.get("response_id")
            records.add(tuple(sorted(u.items())))
        elif p.get("type") == "token_count" and (info := p.get("info")) and info.get("last_token_usage"):
            u, total = info["last_token_usage"], tuple(sorted((info.get("total_token_usage") or {}).items()))
            if total and total == before:
                continue
            key, before = (before, total, tuple(sorted(u.items()))), total
            # The newer record has this call already.
            if tuple(sorted(u.items())) in records:
                continue
        else:
            continue
        # What a subagent's file repeats of its parent is in the parent's file.
        if o.get("ordinal", own_from) >= own_from and u["input_tokens"] < IMPOSSIBLE:
            read, write = u.get("cached_input_tokens", 0), u.get("cache_write_input_tokens", 0)
            yield str(key), model, {"input": u["input_tokens"] - read - write, "read": read, "write": write,
                                    "output": u["output_tokens"], "searches": searches}
            searches = 0


def pi(path):
    for o in lines(path):
        m = o.get("message") or {}
        u = m.get("usage")
        if m.get("role") == "assistant" and u:
            counts = {"input": u["input"], "output": u["output"], "read": u.get("cacheRead", 0), "write": u.get("cacheWrite", 0)}
            yield f"{o.get('id')} {m.get('timestamp')} {o.get('timestamp')}", m.get("model"), counts


def gemini(u, model, key):
    thoughts = u.get("thoughts", u.get("thoughtsTokenCount", 0))
    out = u.get("output", u.get("candidatesTokenCount", 0))
    read, prompt = u.get("cached", u.get("cachedContentTokenCount", 0)), u.get("input", u.get("promptTokenCount", 0))
    return key, model, {"input": prompt - read + u.get("tool", 0), "read": read, "output": out + thoughts}


def qwen(path):
    # Of two lines with one id, the last is whole.
    replies = {o["uuid"]: o for o in lines(path) if o.get("usageMetadata")}
    agents = [o for p in (path.parent.parent / "subagents" / path.stem).glob("*.jsonl") for o in lines(p)]
    known = [gemini(o["usageMetadata"], None, None)[2] for o in [*replies.values(), *agents] if o.get("usageMetadata")]
    for o in replies.values():
        # A fork has other ids, and the same replies at the same time.
        key = json.dumps([o.get("timestamp"), o.get("model"), o["usageMetadata"], o.get("message")])
        yield gemini(o["usageMetadata"], o.get("model"), key)
    for o in lines(path):
        e = (o.get("systemPayload") or {}).get("uiEvent") or {}
        if "response_id" in e:
            read = e["cached_content_token_count"]
            out = e["output_token_count"] + e["thoughts_token_count"]
            counts = {"input": e["input_token_count"] - read, "read": read, "output": out}
            # Telemetry repeats the replies.
            if counts in known:
                known.remove(counts)
            else:
                yield e["response_id"], e["model"], counts


def recorder(path):
    for o in lines(path):
        reply = o.get("reply")
        if o.get("type") != "exchange" or o.get("status") != 200 or not reply:
            continue
        if reply.startswith("{"):
            body = json.loads(reply)
            u, model = body.get("usage") or {}, body.get("model")
        else:
            events = [json.loads(e) for e in re.findall(r"^data: (\{.*)$", reply, re.M)]
            u, model = {}, None
            for e in events:
                model = (e.get("message") or e).get("model") or model
                u.update((e.get("message") or e).get("usage") or {})
        yield f"{path} {o['number']}", model, any_api(u)


def openhands(path):
    for o in lines(path):
        for u in (o.get("metrics") or {}).get("token_usages", []):
            read, write = u.get("cache_read_tokens", 0), u.get("cache_write_tokens", 0)
            counts = {"input": u["prompt_tokens"] - read - write, "read": read, "write": write, "output": u["completion_tokens"]}
            yield u["response_id"], u["model"].replace("openai/openrouter-llama", "meta-llama/llama"), counts


def conversations(path):
    """Stored messages and replies of the APIs."""
    text = path.read_text()
    all_ = list(lines(path)) if path.suffix == ".jsonl" else [json.loads(text)]
    for n, d in enumerate(all_):
        model = d.get("model") or (d.get("request") or {}).get("model")
        replies = [m for m in d.get("messages") or (d.get("request") or {}).get("messages", []) if isinstance(m, dict)]
        replies += [r for r in (d.get("response"),) if isinstance(r, dict)]
        replies += [d] if d.get("usage") else []
        for k, m in enumerate(replies):
            if m.get("usage"):
                yield from ((key, mo, c) if m["usage"].get("iterations") else (key, mo, any_api(m["usage"]))
                            for key, mo, c in with_inside(m.get("id") or f"{path} {n} {k}", m.get("model") or model, m["usage"]))


def inspect_ai(path):
    for sample in json.loads(path.read_text())["samples"]:
        # Calls of scorers are no calls of the sample.
        agents = {e["id"] for e in sample["events"] if e["event"] == "span_begin" and e.get("type") == "agent"}
        for e in sample["events"]:
            is_own = not agents or e.get("span_id") in agents
            u = (e.get("output") or {}).get("usage") if e["event"] == "model" and is_own else None
            if u:
                read, write = u.get("input_tokens_cache_read") or 0, u.get("input_tokens_cache_write") or 0
                plain = u["total_tokens"] - u["output_tokens"] - read - write
                yield e["uuid"] + e["timestamp"], e["output"]["model"], {
                    "input": plain, "read": read, "write": write, "output": u["output_tokens"]}


def atif(path):
    def steps(d, model):
        model = (d.get("agent") or {}).get("model_name", model)
        for s in d["steps"]:
            m = s.get("metrics")
            # Sums of several calls are left out and named: their prices depend on each prompt.
            if m and s.get("llm_call_count", 1) == 1 and not s.get("is_copied_context"):
                write = (m.get("extra") or {}).get("cache_creation_input_tokens", 0)
                read = m.get("cached_tokens", 0)
                counts = {"input": m["prompt_tokens"] - read - write, "read": read, "write": write, "output": m["completion_tokens"]}
                yield f"{path} {id(s)}", s.get("model_name") or model, counts
        for sub in d.get("subagent_trajectories", []):
            yield from steps(sub, model)
    yield from steps(json.loads(path.read_text()), None)


def cline(path):
    # One model for a task; each request says what it counted and cost.
    talk = path.with_name("api_conversation_history.json").read_text()
    told = re.search(r"<model>(.*?)</model>", talk)
    model = next((m["modelInfo"]["modelId"] for m in json.loads(talk) if m.get("modelInfo")), told and told[1])
    for m in json.loads(path.read_text()):
        condensed = (m.get("contextCondense") or {}).get("cost")
        if condensed:
            yield f"condense {m['ts']}", None, {"told": condensed}
        if m.get("say") == "api_req_started":
            u = json.loads(m["text"])
            if "tokensIn" in u:
                read, write = u.get("cacheReads", 0), u.get("cacheWrites", 0)
                # The samples of Roo Code are of versions that count the cached part in the input.
                plain = u["tokensIn"] - (read + write if "apiProtocol" in u else 0)
                yield str(m["ts"]), model, {"input": plain, "output": u["tokensOut"], "write": write, "read": read,
                                            "told": u.get("cost")}


def cline_sdk(path):
    for m in json.loads(path.read_text())["messages"]:
        if u := m.get("metrics"):
            read, write = u["cacheReadTokens"], u["cacheWriteTokens"]
            yield f"{path.name} {m['id']}", m["modelInfo"]["id"], {
                "input": u["inputTokens"] - read - write, "read": read, "write": write, "output": u["outputTokens"]}


def kimi(path):
    for o in lines(path):
        if o.get("type") == "usage.record":
            u = o["usage"]
            yield f"{path} {o['time']}", o["model"], {
                "input": u["inputOther"], "read": u["inputCacheRead"], "write": u["inputCacheCreation"], "output": u["output"]}


def of_copilot(model, u):
    read, write = u.get("cacheReadTokens", 0), u.get("cacheWriteTokens", 0)
    return model, {"input": u["inputTokens"] - read - write, "read": read, "write": write, "output": u["outputTokens"]}


def copilot_cli(path):
    # Without the database, only compactions are counted.
    for o in lines(path):
        if used := (o.get("data") or {}).get("compactionTokensUsed"):
            yield f"{path.name} {o['id']}", *of_copilot(used["model"], used)


def copilot_vscode(path):
    def summaries(value):
        for v in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from summaries(v)
        if isinstance(value, dict) and "toolCallRoundId" in value and "usage" in value:
            yield value
    text = path.read_text()
    for s in summaries(list(lines(path)) if path.suffix == ".jsonl" else json.loads(text)):
        yield s["toolCallRoundId"], s["model"], openai(s["usage"])


def amp(path):
    for m in json.loads(path.read_text())["messages"]:
        if u := m.get("usage"):
            counts = {"input": u["inputTokens"], "read": u["cacheReadInputTokens"], "write": u["cacheCreationInputTokens"]}
            yield f"{path.name} {m['messageId']}", u["model"], {**counts, "output": u["outputTokens"]}


def gemini_stream(path):
    all_ = list(lines(path))
    # With a call of a tool there were at least two calls of the model, and only their sum is known.
    for o in all_ if not any(o["type"] == "tool_use" for o in all_) else ():
        if s := o.get("stats"):
            counts = {"input": s["input"], "read": s["cached"], "output": s["total_tokens"] - s["input_tokens"]}
            yield path.name, all_[0]["model"], counts


def kimi_cli(path):
    for o in lines(path):
        if u := (o.get("message", {}).get("payload") or {}).get("token_usage"):
            # No model is named, so no price is known.
            yield o["message"]["payload"]["message_id"], None, {
                "input": u["input_other"], "read": u["input_cache_read"], "write": u["input_cache_creation"], "output": u["output"]}


def swe_agent(path):
    # Only sums over the run.
    usd = json.loads(path.read_text())["info"]["model_stats"]["instance_cost"]
    if usd:
        yield path.name, None, {"told": usd}


def aider(path):
    model, n = None, lambda text: float(text.replace(",", "").rstrip("k")) * (1000 if text.endswith("k") else 1)
    for at, line in enumerate(path.read_text().splitlines()):
        if found := re.match(r"> (?:Models?|Main model): (\S+)", line):
            model = found[1]
        if found := re.match(r"> Tokens: ([\d.,k]+) sent, (?:([\d.,k]+) cache write, )?(?:([\d.,k]+) cache hit, )?([\d.,k]+) received", line):
            sent, write, hit, got = (n(x) if x else 0 for x in found.groups())
            yield f"{path} {at}", model, {"input": sent - hit, "read": hit, "write": write, "output": got}


def opencode(path):
    return opencode_calls(json.loads(path.read_text())["messages"])


def opencode_tables(path):
    parts = [(p["message_id"], json.loads(p["data"])) for p in rows_of(path, "part")]
    return opencode_calls(
        {"info": json.loads(m["data"]), "parts": [part for of, part in parts if of == m["id"]]} for m in rows_of(path, "message")
    )


def opencode_calls(messages):
    for m in messages:
        info = m["info"]
        for p in [p for p in m["parts"] if p["type"] == "step-finish"] or [info]:
            t = p.get("tokens")
            if info["role"] == "assistant" and t:
                c = t.get("cache") or {}
                yield f"{info['time']['created']} {p.get('id')}", info.get("modelID"), {
                    "input": t["input"], "output": t["output"] + t.get("reasoning", 0), "read": c.get("read", 0), "write": c.get("write", 0)}


def rows_of(path, table):
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    return [dict(row) for row in db.execute(f"select * from {table}")]


def crush(path):
    # A session's cost has that of the sessions that it called.
    for s in rows_of(path, "sessions"):
        if s["cost"] and not s["parent_session_id"]:
            yield s["id"], None, {"told": s["cost"]}


def goose(path):
    if path.suffix == ".json":
        s = json.loads(path.read_text())
        return iter([(f"{path}", None, {"told": s["accumulated_cost"]})])
    return goose_ledger(path)


def goose_ledger(path):
    calls = rows_of(path, "usage_ledger")
    for u in calls:
        read, write = u["cache_read_tokens"] or 0, u["cache_write_tokens"] or 0
        plain = u["input_tokens"] - (read + write if u["input_tokens"] >= read + write else 0)
        yield str(u["id"]), u["model"], {"input": plain, "read": read, "write": write, "output": u["output_tokens"]}
    for s in rows_of(path, "sessions"):
        if s["accumulated_cost"] and s["id"] not in {u["session_id"] for u in calls}:
            yield s["id"], None, {"told": s["accumulated_cost"]}


def zed(path):
    # The sum of a thread. The samples are too small for prices of long prompts, and the compressed one is `thread.json`.
    is_db = path.suffix == ".db"
    threads = [t["data"] for t in rows_of(path, "threads") if t["data_type"] == "json"] if is_db else [path.read_text()]
    for thread in map(json.loads, threads):
        u = thread["cumulative_token_usage"]
        yield str(thread["messages"][0]), thread["model"]["model"], {
            "input": u["input_tokens"], "read": u.get("cache_read_input_tokens", 0),
            "write": u.get("cache_creation_input_tokens", 0), "output": u["output_tokens"]}


def cursor(path):
    for row in rows_of(path, "cursorDiskKV"):
        if row["key"].startswith("composerData:"):
            for model, u in json.loads(row["value"]).get("usageData", {}).items():
                yield row["key"] + model, None, {"told": u["costInCents"] / 100}


def openclaw(path):
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "lines.jsonl"
        text.write_text("\n".join(row["event_json"] for row in rows_of(path, "transcript_events")))
        yield from pi(text)


DATABASES = [(cursor, "cursorDiskKV"), (goose, "content_json"), (crush, "summary_message_id"), (zed, "data_type"),
             (openclaw, "transcript_events"), (opencode_tables, "time_updated")]


def built(folder, unpacked):
    """A copy of a folder with the databases that its SQL files describe."""
    if not any(folder.glob("*.sql")):
        return folder
    copy = Path(shutil.copytree(folder, Path(unpacked) / folder.name))
    for sql in copy.glob("*.sql"):
        db = sqlite3.connect(sql.with_suffix(".db"))
        db.executescript(sql.read_text())
        db.close()
    return copy


def reader_of(path):
    if path.suffix == ".db":
        schema = str(rows_of(path, "sqlite_master"))
        return next(read for read, mark in DATABASES if mark in schema)
    head = path.read_text(errors="replace")[:4000]
    if path.name == "api_conversation_history.json" or path.name.startswith("context"):
        return None
    if path.name == "wire.jsonl" and '"created_at"' not in head:
        return kimi_cli
    if path.name.startswith("T-"):
        return amp
    if path.name == "ui_messages.json":
        return cline
    if path.name.endswith(".messages.json"):
        return cline_sdk
    if '"protocol_version"' in head:
        return kimi
    if "# aider chat started" in head:
        return aider
    if path.suffix == ".traj":
        return swe_agent
    if path.suffix not in (".json", ".jsonl"):
        return None
    tests = [
        ('"copilot-agent"', copilot_cli), ('"responderUsername"', copilot_vscode), ('"type":"init"', gemini_stream),
        ('"type":"session_start"', None),
        ('"ctxbench_recording"', recorder), ('"token_usages"', openhands), ('"schema_version": "ATIF', atif), ('"instance_id"', openhands),
        ('"accumulated_cost"', goose), ('"request_token_usage"', zed), ('"usageMetadata"', qwen), ('"sessionId":', claude_code), ('"projectHash"', None), ('"type":"session"', pi),
        ('"originator"', codex), ('"session_meta"', codex), ('"eval"', inspect_ai), ('"projectID"', opencode), ('"messages"', conversations), ('"output"', conversations),
    ]
    if '"projectHash"' in head:
        return lambda p: (gemini(m["tokens"], m.get("model"), m["id"]) for m in json.loads(p.read_text())["messages"] if m.get("tokens"))
    return next((read for mark, read in tests if mark in head), None)


def main():
    with tempfile.TemporaryDirectory() as unpacked:
        return compared(map(Path, sys.argv[2:]), unpacked)


def compared(folders, unpacked):
    prices, failed = Prices(), False
    for folder in folders:
        folder = built(folder, unpacked)
        files = [folder] if folder.is_file() else []
        # A session has the files of its subagents in a folder of its name.
        within = folder.with_suffix("") if files else folder
        if folder.suffix == ".zip":
            files, within = [], Path(unpacked) / folder.name
            zipfile.ZipFile(folder).extractall(within)
        files += sorted(p for p in within.rglob("*") if p.is_file())
        billed, total, unpriced = set(), 0.0, set()
        for path in files:
            read = reader_of(path)
            for key, model, counts in read(path) if read else ():
                # Requests that name no message are of one file.
                # Copies repeat a call with all that is said about it.
                identity = (key, model, str(counts))
                if identity not in billed:
                    billed.add(identity)
                    usd = prices.usd(model, counts)
                    total += usd or 0.0
                    unpriced |= {model} if usd is None else set()
        told = subprocess.run([sys.argv[1], "list", "sessions", folder, "--json"], capture_output=True, text=True).stdout
        listed = sum(json.loads(row).get("cost_usd") or 0.0 for row in told.splitlines())
        same = abs(total - listed) <= 1e-6 + 1e-9 * total
        failed |= not same
        mark = "" if same else "  DIFFERS"
        note = f"  (no price: {', '.join(sorted(map(str, unpriced)))})" if unpriced else ""
        print(f"{folder}: {len(billed)} calls, {total:.6f} recomputed, {listed:.6f} listed{mark}{note}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
