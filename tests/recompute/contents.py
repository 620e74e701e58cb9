#!/usr/bin/env python3
"""Recomputes the sums of `explain --contents` of a Claude Code recording from the raw file, without any code of ctxbench.

    ctxbench explain r.jsonl --contents --json > contents.json
    tests/recompute/contents.py r.jsonl contents.json VOCABULARY

Compares the largest prompt, the dollars of all prompts of the main conversation, and the tokens of each tool at the largest
prompt, where tokens are counted from texts and may differ by three per cent. Exits with 1 where they differ. Needs Python 3.11.
"""

import json
import sys
from collections import defaultdict

sys.dont_write_bytecode = True

from bill import Prices
from tokens import O200k

# How Claude counts visible text (docs/method.md, "Tokens").
PER_TOKEN, PER_BLOCK = 1.10, 34


def calls(lines):
    """The requests in order: counters and model, and the lines before each."""
    seen, before, out = set(), [], []
    for line in lines:
        message = line.get("message") or {}
        usage = message.get("usage")
        if line.get("type") == "assistant" and usage and message["id"] not in seen:
            seen.add(message["id"])
            out.append((usage, message["model"], list(before)))
        before.append(line)
    return out


def on_branch(lines):
    """The lines of the last branch: those before a rewind are calls beside the conversation."""
    by_id = {line["uuid"]: line for line in lines if "uuid" in line}
    at, kept = lines[-1], set()
    while at and at["uuid"] not in kept:
        kept.add(at["uuid"])
        at = by_id.get(at.get("parentUuid") or at.get("logicalParentUuid"))
    return [line for line in lines if line.get("uuid") in kept]


def input_usd(usage, prices):
    written = usage.get("cache_creation_input_tokens", 0)
    hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens", 0)
    tokens = {"input": usage["input_tokens"], "read": usage.get("cache_read_input_tokens", 0)}
    tokens |= {"write_1h": hour, "write_5m": written - hour}
    return sum(n * prices[kind] for kind, n in tokens.items()) / 1e6


def prompt(usage):
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(kind, 0) for kind in kinds)


def tools(lines, count):
    """Tokens of each tool's calls and results since the last compaction."""
    names, out = {}, defaultdict(int)
    for line in lines:
        if line.get("subtype") == "compact_boundary":
            out.clear()
        content = (line.get("message") or {}).get("content")
        for part in content if isinstance(content, list) else []:
            if part["type"] == "tool_use":
                names[part["id"]] = part["name"]
                arguments = json.dumps(part["input"], ensure_ascii=False, separators=(",", ":"))
                out[part["name"]] += count(part["name"]) + count(arguments) + PER_BLOCK
            elif part["type"] == "tool_result":
                texts = part["content"]
                texts = [texts] if isinstance(texts, str) else [t.get("text", "") for t in texts]
                out[names[part["tool_use_id"]]] += sum(count(t) + PER_BLOCK for t in texts)
    return out


def main():
    recording, contents, vocabulary = sys.argv[1:]
    with open(recording, encoding="utf-8") as f:
        lines = [line for line in map(json.loads, f) if not line.get("isSidechain")]
    lines = on_branch(lines)
    with open(contents, encoding="utf-8") as f:
        told = json.load(f)
    words, prices = O200k(vocabulary), Prices()
    requests = calls(lines)
    peak = max(range(len(requests)), key=lambda i: (prompt(requests[i][0]), -i))
    usd = sum(input_usd(usage, prices.of[prices.find(model)][1]) for usage, model, _ in requests)
    own = [r for r in told["rows"] if not r["name"].endswith(", its own requests")]
    parts = sum(r[kind] for r in own for kind in ("first_usd", "cached_usd", "again_usd"))
    pairs = [
        ("peak_request", peak + 1, told["peak_request"], 0),
        ("peak_tokens", prompt(requests[peak][0]), told["peak_tokens"], 0),
        ("sum of the rows", told["peak_tokens"], sum(r["peak_tokens"] for r in told["rows"]), 0),
        ("input_usd", usd, parts, 1e-9),
    ]
    shown = tools(requests[peak][2], lambda text: round(PER_TOKEN * words.count(text)))
    ours = {r["name"]: r["peak_tokens"] for r in told["rows"] if r["kind"] == "tool"}
    pairs += [(f"tool {t}", n, ours.get(t, 0), 0.03 * n) for t, n in sorted(shown.items()) if t in ours]
    differs = [name for name, own, theirs, by in pairs if abs(own - theirs) > by]
    for name, own, theirs, _ in pairs:
        print(f"{name:<20} {own:>14.6f} {theirs:>14.6f}{'  DIFFERS' if name in differs else ''}")
    sys.exit(bool(differs))


main()
