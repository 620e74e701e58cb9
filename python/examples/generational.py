"""Newest replies verbatim, before them a journal of exact lines: the built-in `generational`.

strategies/src/generational/README.md describes the rules. `journal` is in tokens.
"""

import json
from typing import Iterable

from ctxbench import Breakpoint, Compaction, Context, Keep, Session, Strategy, Trigger

HEADER = (
    "(Journal of earlier work: exact lines of messages, calls (>) and results; some are left out.)"
)
HIGH, LOW, STEPS = 0.85, 0.6, 6
LONGEST = 200


class Generational(Strategy):
    name = "generational"
    version = "1"

    young: int = 7
    journal: int = 30_000
    rent: int = 2
    #: Lifetime of cache entries: 5m or 1h.
    ttl: str = "5m"

    def start(self, session: Session) -> None:
        self.paid, self.requested_at = 0.0, None
        self.lines: dict[str, list[str]] = {}
        self.sizes: dict[str, int] = {}
        # Text of the user and the model, and short forms of calls, without the blanks around them.
        self.said: set[str] = set()

    def context(self, ctx: Context) -> Keep | None:
        used, limit = ctx.count_tokens(), share_of_window(ctx, HIGH)
        trigger = Trigger("before_request", used, limit) if used > limit else None
        if trigger:
            plan = self.shrink(ctx, used, share_of_window(ctx, LOW))
        else:
            plan = self.plan(ctx, max(self.young, 1), self.journal, False)
            plan = plan if plan and self.is_due(ctx, used, plan) else None
        self.requested_at = ctx.now
        return self.answer(ctx, plan, trigger)

    def overflow(self, ctx: Context) -> Keep | None:
        if ctx.attempt > 4:
            return None
        plan = self.shrink(ctx, ctx.count_tokens(), share_of_window(ctx, LOW / ctx.attempt))
        return self.answer(ctx, plan, None) if plan else None

    def answer(self, ctx: Context, plan: dict | None, trigger: Trigger | None) -> Keep | None:
        messages = plan["messages"] if plan else ctx.messages
        if plan:
            self.paid = 0.0
        ids = [m.get("id") for m in messages]
        journals = [i for i, m in enumerate(messages) if is_journal(m) and ids[i]]
        ends = [i for i in range(len(messages)) if ends_side(messages, i)][-2:]
        marked = sorted({*journals[-1:], *(i for i in ends if ids[i])}) if journals else []
        named = ["system", *(ids[i] for i in marked)]
        marks = [Breakpoint(i, self.ttl) for i in named] if journals else None
        shown = messages if plan else None
        done = Compaction("clear", "collect") if plan else None
        return Keep(shown, compaction=done, trigger=trigger, breakpoints=marks)

    def plan(self, ctx: Context, young: int, budget: int, tight: bool) -> dict | None:
        """The messages after a collection of all but the newest `young` replies."""
        messages = ctx.messages
        for m in messages:
            self.read(m)
        replies = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        if not replies or len(replies) <= young:
            return None
        first = replies[-young] if young else len(messages)
        asked = max(i for i, m in enumerate(messages) if is_asked(m))
        # Each piece: whether it stays, its messages, the lines of a journal.
        pieces: list[list] = []
        known: set[str] = set()
        for i, m in enumerate(messages[:first]):
            if is_asked(m) and (not tight or i == asked):
                pieces.append([True, [m], []])
                continue
            lines = [l for l in self.read(m) if l.strip() not in known and not known.add(l.strip())]
            if pieces and not pieces[-1][0] and not is_journal(m):
                pieces[-1][2] += lines
            else:
                pieces.append([is_journal(m), [m], lines])
        if first < len(messages):
            pieces.append([True, messages[first:], []])
        empty = ctx.count_tokens([])
        overhead = self.size(ctx, "a") - 1
        sizes = [self.piece(ctx, p, empty, overhead) for p in pieces]
        if sum(s for p, s in zip(pieces, sizes) if not p[0] or is_journal(p[1][0])) > budget:
            room = budget // 2 - overhead
            kept = self.kept(ctx, [l for p in pieces for l in p[2]], room, overhead)
            for p in pieces:
                p[0] = p[0] and not is_journal(p[1][0])
                p[2] = [l for l in p[2] if l.strip() in kept]
            sizes = [self.piece(ctx, p, empty, overhead) for p in pieces]
        changed = next((i for i, p in enumerate(pieces) if not p[0]), len(pieces))
        written = [p[1] if p[0] else journal(p[2]) for p in pieces]
        shown = [m for part in written for m in part]
        return {"messages": shown, "after": empty + sum(sizes), "rewritten": sum(sizes[changed:])}

    def kept(self, ctx: Context, lines: list[str], budget: int, overhead: int) -> set[str]:
        """The lines that stay: in half of the budget text and calls, then the others."""
        kept, used = set(), 0
        for limit, any_line in ((budget // 2, False), (budget, True)):
            for line in reversed(lines):
                text = line.strip()
                if text in kept or not (any_line or text in self.said):
                    continue
                more = self.size(ctx, line) - overhead + 1
                if used + more > limit:
                    break
                used += more
                kept.add(text)
        return kept

    def piece(self, ctx: Context, piece: list, empty: int, overhead: int) -> int:
        stays, messages, lines = piece
        if stays:
            return ctx.count_tokens(messages) - empty
        return overhead + sum(self.size(ctx, l) - overhead + 1 for l in lines)

    def size(self, ctx: Context, text: str) -> int:
        """Tokens of a message with this text."""
        if text not in self.sizes:
            message = {"role": "user", "content": text}
            self.sizes[text] = ctx.count_tokens([message]) - ctx.count_tokens([])
        return self.sizes[text]

    def is_due(self, ctx: Context, used: int, plan: dict) -> bool:
        """Whether the garbage has cost `rent` times the collection, or the cache is cold."""
        prices, cache = ctx.model.prices, ctx.model.cache
        garbage = max(0, used - plan["after"])
        self.paid += garbage * prices.cache_read
        is_long = self.ttl == "1h"
        write = prices.cache_write_1h if is_long else prices.cache_write_5m
        lifetime = cache.lifetime_1h_ms if is_long else cache.lifetime_5m_ms
        fee = plan["rewritten"] * (write - prices.cache_read)
        since = 0 if self.requested_at is None else ctx.now - self.requested_at
        return garbage >= 0.02 * used and (
            since > lifetime or self.paid >= self.rent * fee
        )

    def shrink(self, ctx: Context, used: int, target: int) -> dict | None:
        """Collects with smaller and smaller limits, until the view has `target` tokens."""
        last = None
        for step in range(2 * STEPS):
            # In the second half even the newest reply becomes lines.
            young = max(self.young >> step, 1) if step < STEPS else 0
            budget = min(self.journal, ctx.model.window // 2) >> step % STEPS
            last = self.plan(ctx, young, budget, step >= 2) or last
            if last and last["after"] <= target:
                break
        return last if last and last["after"] < used else None

    def read(self, m: dict) -> list[str]:
        """The lines of a message; the text of a journal has them as they are."""
        if m["id"] not in self.lines:
            found = text_of(m).split("\n")[1:] if is_journal(m) else lines_of(m)
            self.lines[m["id"]] = [l for l in map(str.rstrip, found) if l]
            if m["role"] != "tool" and not is_journal(m):
                calls = [short_form(*named(c)) for c in m.get("tool_calls") or []]
                self.said.update(map(str.strip, [*text_of(m).split("\n"), *calls]))
        return self.lines[m["id"]]


def share_of_window(ctx: Context, share: float) -> int:
    """Tokens of a prompt that fills a share of the window after system prompt and tools."""
    fixed = ctx.count_tokens([])
    return fixed + int((ctx.model.window - fixed) * share)


def text_of(m: dict) -> str:
    content = m.get("content") or ""
    return content if isinstance(content, str) else "\n".join(c.get("text", "") for c in content)


def is_journal(m: dict) -> bool:
    return m["role"] == "user" and text_of(m).startswith(HEADER)


def is_asked(m: dict) -> bool:
    return m["role"] == "user" and not is_journal(m)


def journal(lines: list[str]) -> list[dict]:
    return [{"role": "user", "content": "\n".join([HEADER, *lines])}] if lines else []


def ends_side(messages: list[dict], i: int) -> bool:
    """Whether the next message is of the other side, model or user."""
    sides = [m["role"] == "assistant" for m in messages[i : i + 2]]
    return len(sides) < 2 or sides[0] != sides[1]


def is_short(line: str) -> bool:
    return len(line.encode()) <= LONGEST


def lines_of(m: dict) -> Iterable[str]:
    """Text as it is, calls in short form, results without line numbers."""
    if m["role"] == "tool":
        yield from filter(is_short, map(unnumbered, text_of(m).split("\n")))
        return
    yield from text_of(m).split("\n")
    for call in m.get("tool_calls") or []:
        name, given = named(call)
        yield short_form(name, given)
        for long in (v for v in given.values() if not is_line(v)):
            yield from filter(is_short, long.split("\n"))


def named(call: dict) -> tuple[str, dict[str, str]]:
    """The name of a call and its arguments."""
    name, text = call["function"]["name"], call["function"]["arguments"]
    try:
        given = json.loads(text)
    except ValueError:
        given = {"input": text}
    return name, {k: v if isinstance(v, str) else compact(v) for k, v in given.items()}


def short_form(name: str, given: dict[str, str]) -> str:
    return "".join([f"> {name}", *(f" {k}={v}" for k, v in given.items() if is_line(v))])


def is_line(text: str) -> bool:
    return "\n" not in text and is_short(text)


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def unnumbered(line: str) -> str:
    """The line without the number that a tool wrote before it."""
    text = line.lstrip()
    rest = text.lstrip("0123456789")
    for mark in ("→", "\t", "|", ": "):
        if len(rest) < len(text) and rest.startswith(mark):
            return rest[len(mark) :]
    return line


if __name__ == "__main__":
    Generational.run()
