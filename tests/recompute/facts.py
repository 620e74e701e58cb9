"""Recall: which facts a prompt shows, and which (fact, need) pairs there are."""

import bisect
import functools
import re
from pathlib import Path

QUOTES = str.maketrans({c: None for c in "'\"`\u2018\u2019\u201c\u201d\u00b4\u201e\u00ab\u00bb"})
NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?![\w])")
RESTED = 5

COMMON = set((Path(__file__).parents[2] / "core/session/src/gist/common.txt").read_text().split())
ENDINGS = (
    "ization", "ations", "ation", "ingly", "edly", "ings", "ing", "ied", "ies", "ers", "ed", "es",
    "er", "ly", "s",
)


def stem(word):
    """A content word without its ending; None for what says nothing about a subject."""
    if not word[0].isalpha():
        return word if len(word) > 1 and word.isascii() and word.isdigit() else None
    word = word.lower()
    if len(word) < 3 or word in COMMON:
        return None
    for ending in ENDINGS:
        if word.endswith(ending) and len(word.removesuffix(ending).encode()) >= 4:
            word = word.removesuffix(ending)
            break
    if len(word.encode()) > 4:
        word = word.rstrip("e")
    return word if len(word) >= 3 and word not in COMMON else None


def folded(text):
    return " ".join(text.translate(QUOTES).lower().split())


def numbers(text):
    return {float(n.replace(",", "").replace("_", "")) for n in NUMBER.findall(text)}


class Text:
    """A text in the forms in which facts are looked for."""

    def __init__(self, text):
        self.text, self.folded, self.numbers = text, folded(text), numbers(text)

    def has(self, literal):
        if literal in self.text or folded(literal) in self.folded:
            return True
        if not re.fullmatch(r"\d[\d,_]*(?:\.\d+)?", literal.strip()):
            return False
        value = float(literal.strip().replace(",", "").replace("_", ""))
        return value >= 100 and value in self.numbers

    def carries(self, unit):
        if isinstance(unit, str):
            return self.has(unit)
        return any(sum(w in said for w in unit) >= -(-2 * len(unit) // 3) for said in self.said)

    @functools.cached_property
    def said(self):
        """The stems of each line, and of a long one those of each 400 bytes, half of them shared."""
        pieces = []
        for line in self.text.splitlines():
            line = line.encode()
            starts = range(0, max(len(line) - 200, 1), 200)
            pieces += [line[at : at + 400].decode(errors="ignore") for at in starts]
        return [{stem(w) for w in re.findall(r"\w+", piece)} for piece in pieces]


def units(fact):
    """What is looked for by itself: each literal, or the stems of a fact without any."""
    return fact.get("tokens") or [tuple(fact.get("words", ()))]


def near(text, at, length):
    """The text within 100 bytes on each side of a literal, from the next blank on."""
    start = next((i for i in range(at - 1, -1, -1) if text[i].isspace()), 0)
    blank = re.compile(r"\s").search(text, at + length)
    end = blank.start() if blank else len(text)
    before = text[:start].encode()[-100:].decode(errors="ignore")
    return before + "\n" + text[end:].encode()[:100].decode(errors="ignore")


def words(text):
    return {w.lower() for w in re.findall(r"[^\W_]+", text) if len(w.encode()) >= 3}


def terms(text):
    """The words of a text without case and the punctuation around them."""
    for word in text.split():
        word = re.sub(r"^[\W_]+|[\W_]+$", "", word)
        if word:
            yield word.lower(), len(word.encode())


def neighbors(text):
    """The pairs of words of which one has five bytes, and whether the other has at most five."""
    last = None
    for word, size in terms(text):
        if last and max(size, last[1]) >= 5:
            yield (last[0], word), min(size, last[1]) <= 5
        last = word, size


def pairs_near(around):
    return {pair for side in around.split("\n", 1) for pair, _ in neighbors(side)}


class Usage:
    """The usual pairs of the recorded texts, and their lines."""

    def __init__(self, recorded):
        self.pairs = {p for text in recorded for p, has_short in neighbors(text) if has_short}
        self.lines = {plain(line) for text in recorded for line in text.splitlines()}

    def copies(self, line):
        return len(plain(line).split()) >= 3 and plain(line) in self.lines

    def reads_like(self, pairs):
        usual = len(pairs & self.pairs)
        return usual and usual >= 0.15 * min(len(self.pairs) / 20_000, 1) * len(pairs)

    def statements(self, form):
        """The parts of a text that can state a fact without literals: copied lines and sentences."""
        out = "".join(folded(line) + "\n" for line in form.text.splitlines() if self.copies(line))
        at, text, size = 0, form.folded, len(form.folded.encode())
        for end in range(100, size + 100, 100):
            part = text.encode()[at:end].decode(errors="ignore")
            end = at + len(part.encode())
            middle = len(text.encode()[: (at + end) // 2].decode(errors="ignore"))
            said = self.reads_like(pairs_near(near(text, middle, 0))) and not crowded(text, middle)
            out += part if said else "\n"
            at = end
        return Text(out)


def plain(line):
    """A line without its number and bullet."""
    return re.sub(r"^[0-9]*[→\t|:-]*", "", line.lstrip()).lstrip().lstrip("-* ").rstrip()


@functools.cache
def room(text):
    """Where each word of a text begins, bytes, and the number of different rare words before it."""
    at, rare, out = 0, set(), []
    for word in text.split(" "):
        out.append((at, len(rare)))
        at += len(word.encode()) + 1
        rare |= {p for p in re.split(r"""["'`,;(){}[\]<>=]""", word) if len(p) >= 8}
    return [*out, (float("inf"), len(rare))]


def crowded(text, at):
    """Whether more than a third of the words near a place are rare and new."""
    words, at = room(text), len(text[:at].encode())
    first, end = (bisect.bisect_left(words, (at + by,)) for by in (-100, 100))
    return 3 * (words[end][1] - words[first][1]) > end - first


class Showings:
    """Where the recorded texts show a literal, and whether another text says it."""

    def __init__(self, literal, recorded, usage):
        self.literal, self.places, self.usage = folded(literal), [], usage
        self.is_statement = len(literal.split()) > 1
        for text in recorded:
            at = text.find(literal)
            if at < 0 or not literal or len(self.places) == 32:
                continue
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            line = text[start : end if end >= 0 else None]
            own = near(line, at - start, len(literal))
            place = (words(own), words(near(text, at, len(literal))), pairs_near(own))
            if place not in self.places:
                self.places.append(place)

    def alone_in(self, raw):
        lines = [line.lstrip("-* \t").strip() for line in raw.splitlines()]
        others = "\n".join(line for line in lines if re.search(r"\s", line))
        alone = [line for line in lines if line and not re.search(r"\s", line)]
        alone = alone[: min(32, len(words(others)) // 10)]
        for line in map(folded, alone):
            line = re.sub(r"[^\w/]+$|_+$", "", line)
            if line.endswith(self.literal):
                path = line[: len(line) - len(self.literal)]
                if path.endswith("/") or not re.sub(r"^[^\w/]+", "", path):
                    return True
        return False

    def said_in(self, text, raw):
        ats = [m.start() for m in re.finditer(f"(?={re.escape(self.literal)})", text)]
        if not self.places or not ats:
            return True
        copied = (folded(line) for line in raw.splitlines() if self.usage.copies(line))
        return (
            any(self.said_at(text, at) for at in ats[:32])
            or self.alone_in(raw)
            or any(self.literal in line for line in copied)
        )

    def said_at(self, text, at):
        end = at + len(self.literal)
        for edge in (at, end):
            if text[edge - 1 : edge].isalnum() and edge > 0 and text[edge : edge + 1].isalnum():
                return False
        around = near(text, at, len(self.literal))
        found, pairs = words(around), pairs_near(around)
        sentence = self.usage.reads_like(pairs)
        full = crowded(text, at)
        return self.is_statement or any(
            sentence and (not full or line <= found) and len(line & found) >= min(2, (len(line) + 1) // 2)
            or len(copy) >= 2 and len(copy & found) >= 0.8 * len(copy)
            or len(of_line) >= 2 and len(of_line & pairs) >= 0.8 * len(of_line)
            for line, copy, of_line in self.places
        )


def pairs(session):
    """The (fact, need) pairs that count."""
    out = []
    for fact in session.facts:
        arises = session.messages[fact["arises"]]
        for need in fact["needs"]:
            message = session.messages[need]
            same = (arises.agent, arises.turn) == (message.agent, message.turn)
            again = fact["kind"] == "content"
            if not again and same and replies_between(session, arises, message) < RESTED:
                continue
            if arises.agent != message.agent and not said(session, fact, message):
                continue
            out.append((fact, message))
    return out


def replies_between(session, arises, need):
    own = arises.step + 1 if arises.role == "assistant" else arises.step
    return need.step - own + 1


def said(session, fact, need):
    """Whether the window of the need has the fact from some message before it."""
    return any(
        all(Text(t).carries(u) for u in units(fact))
        for m in session.messages.values()
        if m.agent == need.agent and m.place < need.place
        for t in m.texts
    )


form_of = functools.cache(Text)


class Window:
    """The requests of one window in order: what each shows, fact by fact."""

    def __init__(self, session, texts):
        self.session, self.texts = session, texts
        self.forms, self.recorded = {}, set(session.recorded)
        self.units = {(f["id"], n): (f, u) for f in session.facts for n, u in enumerate(units(f))}
        self.usage = Usage(session.recorded)
        self.showings = {
            u: Showings(u, session.prose, self.usage) for _, u in self.units.values() if isinstance(u, str)
        }

    def text(self, item):
        sha = item["sha256"]
        if sha not in self.forms:
            self.forms[sha] = form_of(self.texts[sha]) if sha in self.texts else None
        return self.forms[sha]

    @functools.cache
    def shown(self, form):
        """The units that a text contains, and says unless it is a recorded one."""
        if form.text in self.recorded:
            return {key for key, (_, unit) in self.units.items() if form.carries(unit)}
        said = self.usage.statements(form)
        return {
            key for key, (_, unit) in self.units.items()
            if form.carries(unit)
            and (
                said.carries(unit) if isinstance(unit, tuple)
                else self.showings[unit].said_in(form.folded, form.text)
            )
        }

    def follow(self, lines):
        """Per line the set of units it shows by item: a list of (item, units)."""
        out, made, before, answered = [], {}, set(), None
        # Visible facts since the previous summary, and the sources of the newest summary.
        since, last, asked = set(), None, False
        for line in lines:
            shown, now = [], set()
            if asked and line["purpose"] == "sample":
                since, asked = set(), False
            if last is None:
                last = since
            held = [n for n, i in enumerate(line["items"]) if key(i) in before]
            for at, item in enumerate(line["items"]):
                sha, form = key(item), self.text(item)
                now.add(sha)
                if form is None:
                    shown.append((item, None))
                    continue
                ids = set(self.shown(form))
                if written(item):
                    ids = made.setdefault(sha, ids & last) if sha not in before else made[sha]
                elif item["role"] == "assistant" and item["kind"] != "base":
                    # A message after everything kept is the newest reply, even if an older one has
                    # the same text; anywhere else it is shown again.
                    newest = sha not in before and at > max(held, default=-1)
                    if newest or sha not in made:
                        made[sha] = ids & self.known(answered)
                    ids = made[sha]
                elif form.text not in self.recorded and line["purpose"] == "sample":
                    # A strategy's own text may say what had been stated when it was first sent.
                    ids = made.setdefault(sha, ids & self.stated(line["step"], line.get("agent")))
                elif item["kind"] == "summary_prompt":
                    # It quotes replies, and a quotation is not a new mention.
                    ids &= since | self.arisen(answered)
                shown.append((item, ids))
            out.append(shown)
            seen = set().union(*(ids for _, ids in shown if ids))
            since |= seen
            if line["purpose"] == "summary":
                last, asked = set(since), True
            if line["purpose"] == "sample" and line["status"] == "ok":
                answered = (line["step"], seen)
            before = now if line["purpose"] == "sample" else before | now
        return out

    @functools.cache
    def stated(self, step, agent):
        """Units that users, results and standing texts stated up to a step, or that arose before it."""
        before = [m for m in self.session.messages.values() if m.agent == agent and m.step <= step]
        said = [t for m in before if m.role != "assistant" for t in m.texts]
        arose = {m.id for m in before if m.role != "assistant" or m.step < step}
        return {
            key for key, (f, _) in self.units.items() if f["arises"] in arose
        }.union(*(self.shown(form_of(t)) for t in said + self.session.standing))

    def arisen(self, answered):
        """Units that no normal request can have shown yet."""
        step = answered[0] if answered else 0
        of = self.session.messages
        return {key for key, (f, _) in self.units.items() if of[f["arises"]].step >= step}

    def known(self, answered):
        """What the reply to this request may say: what was visible, and what arises in it."""
        if answered is None:
            return set(self.units)
        step, seen = answered
        arising = set()
        for unit, (f, _) in self.units.items():
            m = self.session.messages[f["arises"]]
            if m.role == "assistant" and m.step == step:
                arising.add(unit)
        return seen | arising


def key(item):
    """What tells an item from others: two calls may have the same arguments."""
    return item["sha256"], item.get("id")


def written(item):
    """Whether a summary call wrote this item."""
    return item["kind"] in ("summary", "compaction")


def recall(session, lines, texts, parts):
    """(share of pairs in per cent, pairs, pairs undecided for want of a text, verdict per pair). Adds
    to `parts` the share of each pair's literals."""
    counted = pairs(session)
    kept, unsure, verdicts = 0, 0, {}
    shown = {}
    for fact, need in counted:
        if need.agent not in shown:
            own = [r for r in lines if r.get("agent") == need.agent]
            shown[need.agent] = own, Window(session, texts).follow(own)
        own, by_line = shown[need.agent]
        verdict = False
        parts[fact["id"], need.id] = 0
        # A request beyond the path can have this step before the message was said.
        said_now = need.role != "user"
        for line, items in zip(own, by_line):
            said_now = said_now or any(is_message(i, need, texts) for i, _ in items)
            if not said_now:
                continue
            if (line["purpose"], line["status"], line["step"]) != ("sample", "ok", need.step):
                continue
            rest = [ids for i, ids in items if not is_message(i, need, texts)]
            seen = set().union(*(ids for ids in rest if ids))
            # Different items may show different literals.
            there = [(fact["id"], n) in seen for n in range(len(units(fact)))]
            parts[fact["id"], need.id] = sum(there) / len(there)
            if all(there):
                verdict = True
            elif any(ids is None for ids in rest):
                verdict = None
            break
        verdicts[fact["id"], need.id] = verdict
        kept += verdict is True
        unsure += verdict is None
    share = 100 * kept / len(counted) if counted else None
    return share, len(counted), unsure, verdicts


def is_message(item, need, texts):
    if need.role != "user" or item["kind"] != "user":
        return False
    text = texts.get(item["sha256"], "")
    return any(t.strip() in text for t in need.texts)
