"""What a strategy sees while it is asked, and whom it may ask in turn."""

from __future__ import annotations

from typing import Any, Literal, Sequence, Union, overload

from .answer import Entry, Message
from .session import Call, Model, Session, Usage, pick
from .state import State
from .wire import MODEL, ProtocolError, RemoteError, Wire

Reason = Literal["turn", "step", "overflow", "manual", "idle", "after_turn", "resume"]
Which = Literal["main", "summary"]
#: True for those of the session, or your own: `name`, `description`, `input_schema`.
Tools = Union[bool, Sequence[dict[str, Any]]]
#: Messages for the model, or a text of the user.
Question = Union[str, Sequence[Entry]]


class ModelError(Exception):
    """The model did not answer. `class_`: overflow, rate_limited, invalid, server, stream."""

    def __init__(self, message: str, class_: str, status: int | None) -> None:
        super().__init__(message)
        self.class_, self.status = class_, status


class RequestError:
    """Why a request of the conversation failed, for the `attempt`-th time in a row, from 1."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.class_: str = params["class"]
        self.status: int | None = params.get("status")
        self.message: str = params.get("message", "")
        self.attempt: int = params["attempt"]


class Reply:
    """What the model answered to `complete`."""

    def __init__(self, result: dict[str, Any]) -> None:
        #: List of `{"type": "text", "text": …}`, or of `tool_use` with `name` and `input`.
        self.content: list[dict[str, Any]] = result["content"]
        self.usage: Usage = pick(Usage, result["usage"])
        self.stop_reason: str = result["stop_reason"]

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(c["text"] for c in self.content if c.get("type") == "text")

    @property
    def call(self) -> dict[str, Any] | None:
        """The arguments with which the model calls your first tool, if you gave tools."""
        inputs = [c["input"] for c in self.content if c.get("type") == "tool_use"]
        return inputs[0] if inputs else None


class Task:
    """A question to the model that is answered while the conversation continues."""

    def __init__(self, wire: Wire, started: dict[str, Any]) -> None:
        self._wire, self._task = wire, started["task"]

    def result(self, wait: bool = True) -> Reply | None:
        """The answer; without `wait`, None while it is pending. Raises `ModelError`."""
        answer = ask(self._wire, "collect", {"task": self._task, "wait": wait})
        return None if answer.get("pending") else Reply(answer)


def ask(wire: Wire, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A call to ctxbench; a failure of the model is a `ModelError`."""
    try:
        return wire.call(method, params)
    except RemoteError as e:
        if e.code == MODEL:
            raise ModelError(str(e), e.data.get("class", ""), e.data.get("status")) from None
        raise ProtocolError(f"ctxbench refused `{method}`: {e} (code {e.code})") from None


class Context:
    """The conversation at this moment. Times in ms of the session, sizes in tokens."""

    def __init__(self, wire: Wire, session: Session, state: State, dialect: str) -> None:
        self._wire, self._state, self._dialect = wire, state, dialect
        self.session = session
        #: Why `context` is asked.
        self.reason: Reason = "turn"
        self.now = 0
        #: Of the last reply, or None.
        self.usage: Usage | None = None
        self.stop_reason: str | None = None
        #: Of the last request, as the provider counts, or None.
        self.request_tokens: int | None = None
        # Instructions of the user, with reason `manual`.
        self.instructions: str | None = None
        #: How long nothing happened, with reason `idle`.
        self.idle_ms = 0
        #: How often the request was refused as too large, with reason `overflow`.
        self.attempt = 0
        #: In `admit`: the call that the result answers; None if ctxbench does not send it.
        self.call: Call | None = None
        #: Ids that the new texts of the last answer were given, in their order.
        self.new_ids: list[str] = []

    def _told(self, params: dict[str, Any]) -> None:
        """Takes in what a call says."""
        self.reason = params["reason"]
        self.now = params["now"]
        usage = params.get("usage")
        self.usage = pick(Usage, usage) if usage else None
        self.request_tokens = params.get("request_tokens")
        self.instructions = params.get("instructions")
        self.idle_ms = params.get("idle_ms") or 0
        self.attempt = params.get("attempt") or 0
        self.new_ids = params.get("new_ids") or []
        self._state.grow(params.get("added") or [], self.new_ids)

    @property
    def messages(self) -> list[Message]:
        """The conversation as it stands; a new list each time, of read-only messages."""
        return list(self._state.messages)

    @property
    def model(self) -> Model:
        return self.session.model

    @property
    def scale(self) -> float:
        """Multiply constants in tokens of your own by it; limits and settings are scaled."""
        return self.session.scale

    def tokens(self, amount: float) -> int:
        """Converts a constant of your own, such as 30_000, to the scale of the session."""
        return round(amount * self.scale)

    @property
    def settings(self) -> dict[str, Any]:
        return self.session.settings

    @overload
    def complete(
        self,
        messages: Question,
        *,
        system: str | bool | None = ...,
        tools: Tools = ...,
        max_tokens: int | None = ...,
        model: Which = ...,
        background: Literal[False] = ...,
    ) -> Reply: ...
    @overload
    def complete(
        self,
        messages: Question,
        *,
        system: str | bool | None = ...,
        tools: Tools = ...,
        max_tokens: int | None = ...,
        model: Which = ...,
        background: Literal[True],
    ) -> Task: ...

    def complete(
        self,
        messages: Question,
        *,
        system: str | bool | None = None,
        tools: Tools = False,
        max_tokens: int | None = None,
        model: Which = "main",
        background: bool = False,
    ) -> Reply | Task:
        """Asks the model, through the provider of the run: billed, cached, waited for.

        `messages` is a list of messages, or a text of the user.
        `system` and `tools` True show those of the session, so that messages of the conversation
        are read from its prompt cache. Of tools of your own the model calls the first: `Reply.call`
        has its arguments. In the `background` the conversation continues, and the
        answer is a `Task`. Raises `ModelError`.
        """
        if isinstance(messages, str):
            item = {"type": "message"} if self._dialect == "openai-responses" else {}
            messages = [{**item, "role": "user", "content": messages}]
        params: dict[str, Any] = {"messages": [self._state.entry(m) for m in messages]}
        if system is not None and system is not False:
            params["system"] = system
        if tools:
            params["tools"] = list(tools) if isinstance(tools, tuple) else tools
        if max_tokens is not None:
            params["max_tokens"] = max_tokens
        if model != "main":
            params["model"] = model
        if background:
            return Task(self._wire, ask(self._wire, "complete", {**params, "background": True}))
        return Reply(ask(self._wire, "complete", params))

    def count_tokens(self, messages: Sequence[Entry] | None = None) -> int:
        """Tokens of a request that shows these messages, or the conversation as it stands.

        Tools and system prompt are included; the count is the provider's.
        """
        params = {}
        if messages is not None:
            params["messages"] = [self._state.entry(m) for m in messages]
        tokens: int = ask(self._wire, "count_tokens", params)["tokens"]
        return tokens

    def log(self, text: object) -> None:
        """A line in the trace of the session."""
        self._wire.notify("log", {"message": str(text)})
