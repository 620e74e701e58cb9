"""The conversation as ctxbench has it: which messages stand, and how an answer names them."""

from __future__ import annotations

from operator import is_
from typing import Any, Iterable, Sequence

from .answer import Entry, Message
from .frozen import freeze
from .wire import ProtocolError


class State:
    """Messages in order, each with its id under the key `"id"`."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        # Time when each of them entered. Rewinding uses it.
        self._ages: list[int] = []
        self._now = 0
        self._age_of: dict[str, int] = {}
        self._by_id: dict[str, Message] = {}
        # Ids of items that have one (openai-responses).
        self._item_ids: dict[str, Any] = {}
        #: New texts of the last answer, in their order: ctxbench names them in its next call.
        self._unnamed: list[Message] = []
        self._stays = True
        #: New texts by the object that the strategy made, so that it may show that object again.
        self._own: dict[int, tuple[Message, str]] = {}

    def grow(self, added: Iterable[dict[str, Any]], new_ids: Sequence[str]) -> None:
        """Takes in what entered since the last answer, and the names of its new texts."""
        # Messages for one request only, and removed ones, need no names.
        if len(new_ids) != len(self._unnamed) and (new_ids or self._stays):
            raise ProtocolError(
                f"the last answer held {len(self._unnamed)} new texts, ctxbench named "
                f"{len(new_ids)} of them in `new_ids`"
            )
        if self._unnamed:
            places = {identity(m): i for i, m in enumerate(self.messages)}
            for id, made in zip(new_ids, self._unnamed):
                if (at := places.get(identity(made))) is not None:
                    self.messages[at] = self._know(id, made, self._ages[at])
                    self._own[identity(made)] = (made, id)
            self._unnamed = []
        for a in added:
            self._now += 1
            self.messages.append(self._know(a["id"], a["message"], self._now))
            self._ages.append(self._now)

    def _know(self, id: str, message: Message, age: int) -> Message:
        if id not in self._age_of:
            self._age_of[id] = age
            if "id" in message:
                self._item_ids[id] = message["id"]
        known: Message = freeze({**message, "id": id})
        self._by_id[id] = known
        return known

    def is_same(self, messages: Sequence[Entry]) -> bool:
        """Whether a list holds the very messages of the state; looks into none of them."""
        return len(messages) == len(self.messages) and all(map(is_, messages, self.messages))

    def entry(self, message: Entry) -> Any:
        """How a message is named in a list of messages."""
        id = self._id(message)
        if id is None:
            return {"message": message}
        known = self._by_id.get(id)
        if known is None:
            raise ProtocolError(
                f"message {id!r} does not stand in the conversation: an earlier answer left it "
                'out, or ctxbench never sent it; new text has no "id"'
            )
        if isinstance(message, str) or message is known or {**message, "id": id} == known:
            return id
        plain = {k: v for k, v in message.items() if k != "id"}
        if id in self._item_ids:
            plain["id"] = self._item_ids[id]
        return {"id": id, "message": plain}

    def _id(self, message: Entry) -> str | None:
        if isinstance(message, str):
            return message
        if not isinstance(message, dict):
            raise ProtocolError(
                f"a list of messages holds {type(message).__name__} {message!r:.80}; expected "
                "messages (dict) or ids (str)"
            )
        own: tuple[Message, str] | None = self._own.get(identity(message))
        id: str | None = message.get("id")
        return own[1] if id is None and own is not None else id

    def adopt(self, messages: Sequence[Entry], entries: Sequence[Any], stays: bool) -> None:
        """Notes what was answered; if it stays, it is the conversation from now on."""
        self._unnamed = [m for m, e in zip(messages, entries) if is_new(e)]  # type: ignore
        self._stays = stays
        if not stays:
            return
        now: list[Message] = []
        ages: list[int] = []
        for message, entry in zip(messages, entries):
            if is_new(entry):
                self._now += 1
                now.append(message)  # type: ignore[arg-type]
                ages.append(self._now)
                continue
            id = entry if isinstance(entry, str) else entry["id"]
            if id != entry:
                self._by_id[id] = freeze({**entry["message"], "id": id})
            now.append(self._by_id[id])
            ages.append(self._age_of[id])
        self.messages, self._ages = now, ages
        self._forget()

    def rewind(self, to: str | None) -> None:
        """Takes out what entered after a message; with None everything."""
        # A message without an age is newer than all others.
        last = 0 if to is None else self._age_of.get(to, self._now)
        stays = [age <= last for age in self._ages]
        self.messages = [m for m, s in zip(self.messages, stays) if s]
        self._ages = [a for a, s in zip(self._ages, stays) if s]
        self._stays = False
        self._forget()

    def _forget(self) -> None:
        self._by_id = {m["id"]: m for m in self.messages if "id" in m}
        self._own = {k: v for k, v in self._own.items() if v[1] in self._by_id}


def is_new(entry: Any) -> bool:
    """Whether an entry of a list is new text."""
    return isinstance(entry, dict) and "id" not in entry


#: `id` of an object, under a name that the ids of messages do not hide.
identity = id
