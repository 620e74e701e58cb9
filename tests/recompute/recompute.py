#!/usr/bin/env python3
"""Recomputes the main figures of `summary.csv` and the pairs of `facts.csv` from a trace, in another language and from the
description in docs/method.md, recall.md and results.md alone.

    ctxbench run login-bug --transport direct --trace run.trace --out run
    tests/recompute/recompute.py run.trace run --session scenarios/data/login-bug/scenario.toml

Prints each figure twice, ours and the one of summary.csv, and exits with 1 where they differ by
more than rounding, 2 where the input cannot be read. Needs Python 3.11 and nothing else.
"""

import argparse
import csv
import json
import re
import sys
from pathlib import Path

# The script is in a checkout and must not write there.
sys.dont_write_bytecode = True

import facts
import session as sessions
from billing import Cache, Models
from tokens import O200k

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent.parent / "core" / "src" / "model"
# Figures in CSV files have at most six decimals.
ROUNDING = 1e-6
# How each provider's models count (docs/method.md, "Tokens"): tokens per token of o200k, the second
# figure where a recording's counters tell hidden text apart; and tokens per block.
COUNTING = {"anthropic": ((1.17, 1.10), 34)}
OTHERS = ((1.0,), 4)


class Run:
    """The lines of one (scenario, strategy)."""

    def __init__(self, models):
        self.models = models
        self.lines = []
        self.texts = {}
        # The share of each pair's literals.
        self.parts = {}
        self.differs = []
        # The newest items of each window, some of which the next line leaves out.
        self.newest = {}

    def add(self, line):
        self.lines.append(line)
        for item in line["items"]:
            if "text" in item:
                self.texts[item["sha256"]] = item["text"]
        before = self.newest.get(line.get("agent"), [])[: line.get("same", 0)]
        line["items"] = self.newest[line.get("agent")] = before + line["items"]

    def seen(self, line):
        """The items that the model sees. Some providers leave out the reasoning of earlier turns."""
        items = line["items"]
        earlier = items[: newest_turn(items)]
        if sum(i["tokens"] for i in items) + line["tools_tokens"] == line["context_tokens"]:
            return items
        return [i for i in earlier if i["kind"] != "reasoning"] + items[len(earlier) :]

    def size(self, line):
        """Tokens of what the model sees."""
        return sum(i["tokens"] for i in self.seen(line)) + line["tools_tokens"]

    def edited(self, line):
        """Whether the provider showed the model something else than this."""
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
                # The trace has the size of the definitions instead of the definitions.
                fixed = (("tools", r["tools_tokens"]), r["tools_tokens"])
                items = [(identity(i), i["tokens"], i.get("cache", False)) for i in self.seen(r)]
                billed = cache.ask(r["model"], fixed, items, r["at_ms"], long_lived)
            prompts += prompt
            if billed is None:
                reads = None
                continue
            reads, writes = reads + billed[0], writes + billed[1]
            if billed != (r["cache_read"], r["cache_write"]):
                self.differs.append((r, billed))
            dollars += self.models.dollars(
                r["model"], prompt, *billed, r["output_tokens"], long_lived
            )
            if session and r["purpose"] == "sample" and not r["extra"]:
                searches = session.searches.get((r.get("agent"), r["step"]), 0)
                dollars += searches * self.models.search_usd(r["model"])
        if reads is not None:
            out["cost_usd"] = dollars
        if not edited:
            out["input_tokens"] = prompts
            if reads is not None:
                out["cache_read_tokens"], out["cache_write_tokens"] = reads, writes
            out["prefix_stability"] = stability(self)
        if session is not None and session.facts and not edited:
            out["recall"] = facts.recall(session, self.lines, self.texts, self.parts)
        return out


def identity(item):
    return tuple(item.get(k) for k in ("kind", "role", "sha256", "id", "name"))


def newest_turn(items):
    """Where the newest turn begins: what the user writes between two replies, without a result."""
    newest, begin = 0, 0
    for i in range(1, len(items) + 1):
        by_model = items[begin]["role"] == "assistant"
        if i < len(items) and (items[i]["role"] == "assistant") == by_model:
            continue
        run = items[begin:i]
        if any(x["role"] == "user" for x in run) and all(x["kind"] != "output" for x in run):
            newest = begin
        begin = i
    return newest


def stability(run):
    """What each normal request of the main conversation has in common with the one answered last
    before it."""
    common = earlier = 0
    last = None
    for line in run.lines:
        if "agent" in line or line["purpose"] != "sample":
            continue
        now = [i for i in run.seen(line) if i["kind"] != "base"]
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
    """How many texts were counted anew, and (line, what, tokens) of those that differ."""
    counts, seen = [], set()
    for line in run.lines:
        factors, block = COUNTING.get(models[line["model"]]["provider"], OTHERS)
        tools = session and session.tools.get(line.get("agent"), session.tools.get(None))
        if tools and line["tools_tokens"] and "tools" not in seen:
            seen.add("tools")
            text = json.dumps(tools, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
            counts.append((line, "tools", vocabulary.count(text), 0, line["tools_tokens"]))
        for item in line["items"]:
            key, text = identity(item), run.texts.get(item["sha256"])
            # Content without text: missing from the recording, images, encrypted reasoning.
            if key in seen or not text or item["kind"] in ("unrecorded", "image"):
                continue
            seen.add(key)
            count = vocabulary.count(text) + vocabulary.count(item.get("name") or "")
            counts.append((line, item["kind"], count, block, item["tokens"]))
    by_factor = [
        [(line, what, tokens, nearest(factor * count) + block)
         for line, what, count, block, tokens in counts
         if nearest(factor * count) + block != tokens]
        for factor in factors
    ]
    return len(counts), min(by_factor, key=len)


def nearest(value):
    return int(value + 0.5)


def compare(name, ours, theirs):
    """A line of the table, and whether the two agree."""
    note = ""
    if name == "recall":
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
                   help="session JSONL or scenario TOML, for recall (repeat)")
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
        table = list(csv.DictReader(f))
    rows = {(plain(r["scenario"]), plain(r["strategy"])): r for r in table}
    pairs, path = [], Path(args.out) / "facts.csv"
    # A session without facts has no such file.
    if path.exists():
        with open(path, encoding="utf-8", newline="") as f:
            pairs = list(csv.DictReader(f))
    kept = shares(pairs)
    for key, row in rows.items():
        row["recall"] = kept.get(key, "n/a")
    if len(rows) < len(table):
        raise ValueError("several models, summarisers or seeds: a trace does not tell them apart")
    vocabulary = O200k(args.vocabulary) if args.vocabulary else None
    bad, without = 0, []
    for key in runs.keys() - rows.keys():
        print(f"{key[0]} {key[1]}: DIFFERS: in the trace and not in summary.csv")
        bad += 1
    for key, row in rows.items():
        print(f"{key[0]} {key[1]}")
        if key not in runs:
            # A row made of a recording's own counters has no requests by us.
            good = row["requests"] in ("0", "n/a") or key[1] == "as-recorded"
            print("  not in the trace" + ("" if good else ": DIFFERS"))
            bad += not good
            without.append(key[1])
            continue
        run, session = runs[key], known.get(key[0])
        figures = run.figures(session)
        if "recall" in figures and not figures["recall"][2]:
            own = [p for p in pairs if (plain(p["scenario"]), plain(p["strategy"])) == key]
            figures |= over_events(run.parts, own)
        for name, value in figures.items():
            text, good, note = compare(name, value, row[name])
            mark = "" if good else "  DIFFERS"
            print(f"  {name:20} {text:>16} {row[name]:>16}{mark}{note}")
            bad += not good
        if "cache_read_tokens" not in figures:
            print("  the rest is not in the trace: see docs/method.md, \"Check it yourself\"")
            without.append(key[1])
        if session is not None and not session.facts and row["recall"] != "n/a":
            print("  recall is not covered: the session has no facts, so ctxbench found them itself")
        wrong = []
        if vocabulary:
            checked, wrong = recount(run, vocabulary, models, session)
            print(f"  {'texts counted again':20} {checked - len(wrong):>16} {checked:>16}"
                  + ("  DIFFERS" if wrong else ""))
            bad += len(wrong)
        if args.verbose:
            explain(run, figures, wrong)
    if without:
        print(f"in part or not at all: {', '.join(sorted(set(without)))}")
    print(f"{bad} differ" if bad else "all agree")
    return 1 if bad else 0


def shares(pairs):
    """Per row of summary.csv the share of its (fact, need) pairs that were kept, per cent."""
    found = {}
    for pair in pairs:
        if pair["undelivered"] == "false":
            key = (plain(pair["scenario"]), plain(pair["strategy"]))
            found.setdefault(key, []).append(pair["found"] != "absent")
    return {key: str(100 * sum(all_) / len(all_)) for key, all_ in found.items()}


def over_events(parts, pairs):
    """Recall over all needs and over those at risk. Which needs these are is what facts.csv has."""
    needs = [p for p in pairs if p["counts"] == "true" and p["undelivered"] == "false"]
    risk = [p for p in needs if p["exposed"] == "true" or p["kind"] == "content"]
    (all_, _), (at_risk, count) = events(parts, needs), events(parts, risk)
    return {"recall_pct": all_, "recall_at_risk_pct": at_risk, "at_risk": count}


def events(parts, pairs):
    """The mean share of the messages with these pairs, per cent, and their number."""
    by_need = {}
    for p in pairs:
        by_need.setdefault(p["need"], []).append(parts[plain(p["fact"]), plain(p["need"])])
    means = [sum(own) / len(own) for own in by_need.values()]
    return (100 * sum(means) / len(means) if means else None), len(means)


def plain(cell):
    """A text without the mark that keeps a spreadsheet from taking it for a formula."""
    return cell[1:] if re.match(r"'[\s']*[=+\-@＝＋－＠]|''*[\t\r\n]", cell) else cell


def explain(run, figures, wrong):
    """What differs request by request, and each pair."""
    for line, what, traced, tokens in wrong:
        print(f"    request {line['seq']} {what}: {tokens} tokens, trace {traced}")
    for line, billed in run.differs:
        print(f"    request {line.get('agent', '')} {line['seq']}: read, written {billed},"
              f" trace {(line['cache_read'], line['cache_write'])}")
    for (fact, need), verdict in figures.get("recall", [{}])[-1].items():
        print(f"    {fact} for {need}: {verdict}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyError as e:
        print(f"recompute: no field {e} in the input: of another version?", file=sys.stderr)
        sys.exit(2)
    except (OSError, ValueError) as e:
        print(f"recompute: {e}", file=sys.stderr)
        sys.exit(2)
