#!/usr/bin/env python3
"""Recomputes the main figures of `summary.csv` from a trace, in another language and from the
description in docs/method.md and docs/formats.md alone.

    ctxbench run login-bug --transport direct --trace run.trace --out run
    tests/recompute/recompute.py run.trace run --session scenarios/data/login-bug/scenario.toml

Prints each figure twice, ours and the one of summary.csv, and exits with 1 where they differ by
more than rounding, 2 where the input cannot be read. Needs Python 3.11 and nothing else.
"""

import argparse
import csv
import json
import sys
from pathlib import Path

import facts
import session as sessions
from billing import Cache, Models
from tokens import O200k

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent.parent / "core" / "src" / "model"
# Figures in CSV files have at most six decimals.
ROUNDING = 1e-6
# How each provider's models count: tokens per token of o200k, and tokens per block
# (docs/method.md, "Tokens").
COUNTING = {"anthropic": (1.17, 34)}
OTHERS = (1.0, 4)


class Run:
    """The lines of one (scenario, strategy)."""

    def __init__(self, models):
        self.models = models
        self.lines = []
        self.texts = {}

    def add(self, line):
        self.lines.append(line)
        for item in line["items"]:
            if "text" in item:
                self.texts[item["sha256"]] = item["text"]

    def size(self, line):
        """Tokens of what was sent."""
        return sum(i["tokens"] for i in line["items"]) + line.get("tools_tokens", 0)

    def edited(self, line):
        """Whether the provider showed the model something else than was sent."""
        return line["status"] == "ok" and line["context_tokens"] != self.size(line)

    def figures(self, session):
        edited = any(self.edited(r) for r in self.lines)
        out = {"requests": len(self.lines)}
        out["output_tokens"] = sum(r["output_tokens"] for r in self.lines)
        reads = writes = prompts = 0
        dollars = 0.0
        cache = Cache(self.models)
        for r in sorted(self.lines, key=lambda r: r["at_ms"]):
            if r["status"] != "ok":
                continue
            long_lived = r.get("ttl") == "1h"
            if edited:
                prompt, billed = r["input_tokens"], (r["cache_read"], r["cache_write"])
            else:
                prompt = self.size(r)
                tools = ("tools", r.get("agent") if r["tools"] else None, r["tools"])
                items = [(identity(i), i["tokens"], i.get("cache", False)) for i in r["items"]]
                fixed = (tools, r.get("tools_tokens", 0))
                billed = cache.ask(r["model"], fixed, items, r["at_ms"], long_lived)
            if billed is None:
                reads = None
                break
            prompts, reads, writes = prompts + prompt, reads + billed[0], writes + billed[1]
            if billed != (r["cache_read"], r["cache_write"]):
                r["differs"] = billed
            dollars += self.models.dollars(
                r["model"], prompt, *billed, r["output_tokens"], long_lived
            )
        if reads is not None:
            out["cost_usd"] = dollars
            if not edited:
                out["input_tokens"] = prompts
                out["cache_read_tokens"], out["cache_write_tokens"] = reads, writes
        if not edited:
            out["prefix_stability"] = stability(self.lines)
        if session is not None and not edited:
            out["retention_pct"] = facts.retention(session, self.lines, self.texts)
        return out


def identity(item):
    return tuple(item.get(k) for k in ("kind", "role", "sha256", "id", "name"))


def stability(lines):
    """What each normal request of the main conversation has in common with the one answered last
    before it."""
    common = earlier = 0
    last = None
    for line in lines:
        if "agent" in line or line["purpose"] != "sample":
            continue
        now = [i for i in line["items"] if i["kind"] != "base"]
        if last is not None:
            earlier += sum(i["tokens"] for i in last)
            for x, y in zip(last, now):
                if identity(x) != identity(y):
                    break
                common += x["tokens"]
        if line["status"] == "ok":
            last = now
    return common / earlier if earlier else None


def recount(run, vocabulary, models, session):
    """Items whose tokens are not what their text counts."""
    wrong, checked, seen = [], 0, set()
    for line in run.lines:
        model = models[line["model"]]
        factor, block = COUNTING.get(model["provider"], OTHERS)
        for item in line["items"]:
            key = (line["model"], *identity(item))
            text = run.texts.get(item["sha256"])
            if key in seen or text is None or item["kind"] in ("unrecorded", "image"):
                continue
            seen.add(key)
            count = vocabulary.count(text) + vocabulary.count(item.get("name") or "")
            checked += 1
            if int(factor * count + 0.5) + block != item["tokens"]:
                wrong.append((line, item, int(factor * count + 0.5) + block))
    return checked, wrong


def compare(name, ours, theirs):
    """A line of the table, and whether the two agree."""
    note = ""
    if name == "retention_pct":
        share, count, unsure, _ = ours
        if unsure and theirs != "n/a":
            low, high = share, share + 100 * unsure / count
            good = low - ROUNDING <= float(theirs) <= high + ROUNDING
            note = f"  {unsure} of {count} pairs undecided: a text is missing"
            return f"{low:.6g}..{high:.6g}", good, note
        ours = share
    if ours is None or theirs == "n/a":
        return "n/a" if ours is None else f"{ours:g}", ours is None and theirs == "n/a", note
    if isinstance(ours, int):
        return str(ours), str(ours) == theirs, note
    return f"{ours:.6f}", abs(ours - float(theirs)) <= ROUNDING, note


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("trace", help="file that `run --trace` wrote")
    p.add_argument("out", help="results folder of the same run")
    p.add_argument("--session", action="append", default=[], metavar="FILE",
                   help="session JSONL or scenario TOML, for retention (repeat)")
    p.add_argument("--models", default=MODELS, metavar="DIR",
                   help="folder of models.toml and rules.toml (default: those of this checkout)")
    p.add_argument("--vocabulary", metavar="FILE",
                   help="o200k_base.tiktoken: counts the tokens of every text anew")
    p.add_argument("--verbose", action="store_true", help="each request and pair that differs")
    return p.parse_args()


def main():
    args = arguments()
    models = Models(args.models)
    known = {s.id: s for s in map(sessions.read, args.session)}
    runs = {}
    with open(args.trace, encoding="utf-8") as f:
        for line in map(json.loads, f):
            key = (line["scenario"], line["strategy"])
            runs.setdefault(key, Run(models)).add(line)
    with open(Path(args.out) / "summary.csv", encoding="utf-8", newline="") as f:
        rows = {(r["scenario"], r["strategy"]): r for r in csv.DictReader(f)}
    vocabulary = O200k(args.vocabulary) if args.vocabulary else None
    bad = 0
    for key, row in rows.items():
        print(f"{key[0]} {key[1]}")
        if key not in runs:
            print("  no line in the trace: not recomputed")
            continue
        run, theirs = runs[key], row
        figures = run.figures(known.get(key[0]))
        for name, value in figures.items():
            text, good, note = compare(name, value, theirs[name])
            mark = "" if good else "  DIFFERS"
            print(f"  {name:20} {text:>16} {theirs[name]:>16}{mark}{note}")
            bad += not good
        if "input_tokens" not in figures:
            print("  input, cache, prefix and retention not recomputed")
        if vocabulary:
            checked, wrong = recount(run, vocabulary, models, known.get(key[0]))
            print(f"  {'texts counted anew':20} {checked - len(wrong):>16} {checked:>16}"
                  + ("  DIFFERS" if wrong else ""))
            bad += len(wrong)
            for line, item, tokens in wrong if args.verbose else []:
                print(f"    request {line['seq']} {item['kind']}: {tokens}, trace {item['tokens']}")
        if args.verbose:
            for r in run.lines:
                if "differs" in r:
                    print(f"    request {r.get('agent', '')} {r['seq']}: read, written"
                          f" {r['differs']}, trace {(r['cache_read'], r['cache_write'])}")
            for pair, verdict in figures.get("retention_pct", [{}])[-1].items():
                print(f"    {pair[0]} for {pair[1]}: {verdict}")
    print(f"{bad} differ" if bad else "all agree")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError) as e:
        print(f"recompute: {type(e).__name__}: {e}", file=sys.stderr)
        sys.exit(2)
