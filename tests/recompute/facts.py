"""Retention: which facts a prompt shows, and which (fact, need) pairs count."""

import functools
import re
from pathlib import Path

QUOTES = str.maketrans({c: "'" for c in "\"`\u2018\u2019\u201c\u201d\u00b4\u201e\u00ab\u00bb"})
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

    def carries(self, fact):
        words = fact.get("words")
        if words and not fact.get("tokens"):
            enough = -(-2 * len(words) // 3)
            return any(sum(w in said for w in words) >= enough for said in self.said)
        return all(self.has(literal) for literal in fact["tokens"])

    @functools.cached_property
    def said(self):
        """The stems of each line."""
        return [{stem(w) for w in re.findall(r"\w+", line)} for line in self.text.splitlines()]


def pairs(session):
    """The (fact, need) pairs that count."""
    out = []
    for fact in session.facts:
        arises = session.messages[fact["arises"]]
        for need in fact["needs"]:
            message = session.messages[need]
            same = (arises.agent, arises.turn) == (message.agent, message.turn)
            if same and replies_between(session, arises, message) < RESTED:
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
        Text(t).carries(fact)
        for m in session.messages.values()
        if m.agent == need.agent and m.place < need.place
        for t in m.texts
    )


class Window:
    """The requests of one window in order: what each shows, fact by fact."""

    def __init__(self, session, texts):
        self.session, self.texts = session, texts
        self.forms = {}

    def text(self, item):
        sha = item["sha256"]
        if sha not in self.forms:
            self.forms[sha] = Text(self.texts[sha]) if sha in self.texts else None
        return self.forms[sha]

    def follow(self, lines, facts):
        """Per line the set of facts it shows by item: a list of (item, ids)."""
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
                ids = {f["id"] for f in facts if form.carries(f)}
                if written(item):
                    ids = made.setdefault(sha, ids & last) if sha not in before else made[sha]
                elif item["role"] == "assistant" and item["kind"] != "base":
                    # A message after everything kept is the newest reply, even if an older one has
                    # the same text; anywhere else it is shown again.
                    newest = sha not in before and at > max(held, default=-1)
                    if newest or sha not in made:
                        made[sha] = ids & self.known(answered, facts)
                    ids = made[sha]
                elif item["kind"] == "summary_prompt":
                    # It quotes replies, and a quotation is not a new mention.
                    ids &= since | self.arisen(answered, facts)
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

    def arisen(self, answered, facts):
        """Facts that no normal request can have shown yet."""
        step = answered[0] if answered else 0
        of = self.session.messages
        return {f["id"] for f in facts if of[f["arises"]].step >= step}

    def known(self, answered, facts):
        """What the reply to this request may say: what was visible, and what arises in it."""
        if answered is None:
            return {f["id"] for f in facts}
        step, seen = answered
        arising = set()
        for f in facts:
            m = self.session.messages[f["arises"]]
            if m.role == "assistant" and m.step == step:
                arising.add(f["id"])
        return seen | arising


def key(item):
    """What tells an item from others: two calls may have the same arguments."""
    return item["sha256"], item.get("id")


def written(item):
    """Whether a summary call wrote this item."""
    return item["kind"] in ("summary", "compaction")


def retention(session, lines, texts):
    """(share kept in per cent, pairs, pairs undecided for want of a text, verdict per pair)."""
    facts = session.facts
    counted = pairs(session)
    kept, unsure, verdicts = 0, 0, {}
    shown = {}
    for fact, need in counted:
        if need.agent not in shown:
            own = [r for r in lines if r.get("agent") == need.agent]
            shown[need.agent] = own, Window(session, texts).follow(own, facts)
        own, by_line = shown[need.agent]
        verdict = False
        # A request beyond the path can have this step before the message was said.
        said_now = need.role != "user"
        for line, items in zip(own, by_line):
            said_now = said_now or any(is_message(i, need, texts) for i, _ in items)
            if not said_now:
                continue
            if (line["purpose"], line["status"], line["step"]) != ("sample", "ok", need.step):
                continue
            rest = [(i, ids) for i, ids in items if not is_message(i, need, texts)]
            if any(ids and fact["id"] in ids for _, ids in rest):
                verdict = True
            elif any(ids is None for _, ids in rest):
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
