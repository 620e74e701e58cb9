"""What a provider bills for a chain of prompts: the prompt cache and the price list, by the models'
tables and the description in docs/method.md."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

PER = 1_000_000


class Models:
    """`models.toml`, `rules.toml` and `terms.toml`, as data."""

    def __init__(self, folder):
        folder = Path(folder)
        with open(folder / "models.toml", "rb") as f:
            self.by_name = {m["name"]: m for m in tomllib.load(f)["model"]}
        with open(folder / "rules.toml", "rb") as f:
            self.rules = tomllib.load(f)
        with open(folder / "terms.toml", "rb") as f:
            self.terms = tomllib.load(f)["rule"]

    def __getitem__(self, name):
        if name not in self.by_name:
            raise SystemExit(f"no model {name!r} in models.toml")
        return self.by_name[name]

    def cache(self, name):
        cache = self[name]["cache"]
        return {**self.rules["cache"][cache["rule"]], **cache}

    def first_possible_ms(self, name):
        """No reply begins before so long after its request."""
        return self.rules["speed"][self[name]["speed"]]["a_ms"]

    def search_usd(self, name):
        """The price of one search of the web."""
        own = (self[name]["provider"], "search")
        rules = (r for r in self.terms if (r["provider"], r["term"]) == own)
        return next((r["usd"] for r in rules if name in r.get("models", [name])), 0.0)

    def dollars(self, name, prompt, read, written, output, long_lived):
        p = self[name]["prices"]
        tiers = [tier for tier in p.get("long", []) if prompt > tier["from"]]
        into = tiers[-1]["input_factor"] if tiers else 1.0
        out = tiers[-1]["output_factor"] if tiers else 1.0
        write = p.get("write_1h" if long_lived else "write_5m", p["input"])
        plain = prompt - read - written
        cost = into * (plain * p["input"] + read * p["read"] + written * write)
        return (cost + out * output * p["output"]) / PER


@dataclass
class Entry:
    size: int
    usable: float
    ends: float
    life: float


class Cache:
    """The cache of one account. `ask` takes the requests in the order in which they are sent."""

    def __init__(self, models):
        self.models = models
        self.entries = {}

    def ask(self, model, fixed, items, at, long_lived):
        """(read, written) of a prompt. `fixed` is (identity, tokens) of what precedes the items,
        an item (identity, tokens, whether a breakpoint follows it)."""
        rule = self.models.cache(model)
        chain, sizes, key, size = [], [], (model, fixed[0]), fixed[1]
        for identity, tokens, _ in items:
            key, size = hash((key, identity)), size + tokens
            chain.append(key)
            sizes.append(size)
        marks = [n for n, item in enumerate(items) if item[2]]
        life = rule.get("long_ms" if long_lived else "short_ms", rule["short_ms"])
        kind = rule["entries"]
        if kind == "breakpoints":
            marks = marks[-rule["breakpoints"]:]
            looked = {n for m in marks for n in range(m, m - rule["lookback"], -1) if n >= 0}
            ends = marks
        elif kind == "everywhere":
            looked = ends = range(len(items))
        elif kind == "breakpoints-and-end":
            marks = marks[-rule["breakpoints"]:]
            if len(marks) < rule["breakpoints"] and items:
                marks = sorted({*marks, len(items) - 1})
            looked, ends = range(len(items)), marks
        else:
            return None
        minimum = rule["minimum"]
        ends = [n for n in ends if sizes[n] >= minimum]
        live = lambda n: (e := self.entries.get(chain[n])) and e.usable <= at < e.ends
        found = max((n for n in looked if sizes[n] >= minimum and live(n)), default=None)
        read = sizes[found] if found is not None else 0
        step = rule.get("step", 1)
        read -= read % step
        last = sizes[ends[-1]] if ends else 0
        written = max(last - read, 0) if rule.get("write_fee") else 0
        usable = at + self.models.first_possible_ms(model)
        # Using a prefix renews every entry that it contains.
        for n in range(0 if found is None else found + 1):
            if live(n):
                self.entries[chain[n]].ends = at + self.entries[chain[n]].life
        for n in ends:
            old = self.entries.get(chain[n])
            if old and old.usable <= at < old.ends:
                continue
            self.entries[chain[n]] = Entry(sizes[n], usable, usable + life, life)
        return read, written
