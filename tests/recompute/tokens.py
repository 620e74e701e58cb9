"""o200k in the standard library: splits a text by the vocabulary's pattern and merges bytes."""

import base64
import re
import sys
import unicodedata


def _classes():
    """The Unicode categories that the pattern names, as ranges for a character class."""
    groups = {"Lu": "U", "Lt": "U", "Ll": "D", "Lm": "B", "Lo": "B"}
    out, starts, last = {k: [] for k in "UDBMN"}, {}, None
    for point in range(sys.maxunicode + 2):
        category = unicodedata.category(chr(point)) if point <= sys.maxunicode else "Cn"
        group = groups.get(category) or (category[0] if category[0] in "MN" else None)
        if group != last:
            if last is not None:
                out[last].append(f"\\U{starts[last]:08x}-\\U{point - 1:08x}")
            if group is not None:
                starts[group] = point
            last = group
    return {k: "".join(v) for k, v in out.items()}


def _pattern():
    c = _classes()
    letter = c["U"] + c["D"] + c["B"]
    upper, lower = c["U"] + c["B"] + c["M"], c["D"] + c["B"] + c["M"]
    lead, tail = rf"[^\r\n{letter}{c['N']}]?", r"(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?"
    return re.compile("|".join([
        rf"{lead}[{upper}]*[{lower}]+{tail}",
        rf"{lead}[{upper}]+[{lower}]*{tail}",
        rf"[{c['N']}]{{1,3}}",
        rf" ?[^\s{letter}{c['N']}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]))


class O200k:
    """A counter made of the published vocabulary: a line per token, base64 and rank."""

    def __init__(self, path):
        with open(path, "rb") as f:
            rows = (line.split() for line in f if line.strip())
            self.ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
        self.pattern = _pattern()
        self.known = {}

    def count(self, text):
        return sum(self._piece(p.encode()) for p in self.pattern.findall(text))

    def _piece(self, piece):
        if piece in self.ranks:
            return 1
        if piece not in self.known:
            parts = [piece[i:i + 1] for i in range(len(piece))]
            none = len(self.ranks)
            while len(parts) > 1:
                pairs = [self.ranks.get(a + b, none) for a, b in zip(parts, parts[1:])]
                best = min(pairs)
                if best == none:
                    break
                at = pairs.index(best)
                parts[at:at + 2] = [parts[at] + parts[at + 1]]
            self.known[piece] = len(parts)
        return self.known[piece]
