"""What the adapters for LangChain and for Deep Agents share: the model, and the messages."""

from __future__ import annotations

import json
from typing import Any, Sequence

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelInvalidRequestError,
    ModelRateLimitError,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatResult

from ctxbench import Context, ModelError, Session, Strategy

ERRORS = {
    "overflow": ContextOverflowError,
    "rate_limited": ModelRateLimitError,
    "invalid": ModelInvalidRequestError,
}


class Model(BaseChatModel):
    """The model of the run, as a chat model of LangChain."""

    adapter: Any
    provider: str
    #: Output that requests ask for.
    max_tokens: int | None = None

    @property
    def _llm_type(self) -> str:
        return f"{self.provider}-chat"

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": self.provider}

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        system = "\n\n".join(m.text for m in messages if isinstance(m, SystemMessage))
        asked = [self.adapter.entry(m) for m in messages if not isinstance(m, SystemMessage)]
        try:
            reply = self.adapter.ctx.complete(asked, system=system or None)
        except ModelError as e:
            raise ERRORS.get(e.class_, ModelAPIError)(str(e)) from e
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply.text))])

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
        shown = [self.adapter.entry(m) for m in messages if not isinstance(m, SystemMessage)]
        return self.adapter.ctx.count_tokens(shown)


class Adapter(Strategy):
    """Keeps LangChain's messages side by side with those of ctxbench, under the same ids."""

    ctx: Context

    def start(self, session: Session) -> None:
        limits = session.model
        self.model = Model(
            adapter=self,
            provider=limits.provider,
            profile={
                "max_input_tokens": limits.window,
                "max_output_tokens": limits.max_output,
            },
        )
        #: By id: the message of ctxbench, and LangChain's.
        self.known: dict[str, tuple[Any, AnyMessage]] = {}
        #: Texts of the library by the identity of its message; the last answer's, in order.
        self.own: dict[int, tuple[AnyMessage, dict[str, Any]]] = {}
        self.unnamed: list[AnyMessage] = []
        # First new message of the last `take`. None: the same request is sent again, which
        # LangChain does inside the model.
        self.fresh: list[Any] = []

    def take(self, ctx: Context) -> list[AnyMessage]:
        """The conversation as it stands, as LangChain's messages."""
        self.ctx = ctx
        for id, made in zip(ctx.new_ids, self.unnamed):
            self.known[id] = None, made
        self.unnamed = []
        standing = ctx.messages
        self.fresh = fresh = [m for m in standing if m["id"] not in self.known]
        replies = [m for m in fresh if m["role"] == "assistant"]
        for m in fresh:
            made = self.message(m)
            if replies and m is replies[-1] and ctx.usage is not None:
                made.usage_metadata = {
                    "input_tokens": ctx.usage.input_tokens,
                    "output_tokens": ctx.usage.output_tokens,
                    "total_tokens": ctx.usage.input_tokens + ctx.usage.output_tokens,
                }
            self.known[m["id"]] = m, made
        return [self.known[m["id"]][1] for m in standing]

    def message(self, m: dict[str, Any]) -> Any:
        """A message as an integration of LangChain makes it of a reply or a result."""
        if m["role"] == "tool":
            return ToolMessage(
                m["content"], tool_call_id=m["tool_call_id"], name=self.tool(m), id=m["id"]
            )
        if m["role"] != "assistant":
            return convert_to_messages([{k: m[k] for k in ("role", "content", "id")}])[0]
        calls, invalid = [], []
        for call in m.get("tool_calls") or []:
            try:
                calls.append(parse_tool_call(call, return_id=True))
            except Exception as e:  # As langchain-openai does.
                invalid.append(make_invalid_tool_call(call, str(e)))
        return AIMessage(
            m["content"] or "",
            tool_calls=calls,
            invalid_tool_calls=invalid,
            response_metadata={"model_provider": self.model.provider},
            id=m["id"],
        )

    def tool(self, result: dict[str, Any]) -> str | None:
        for given, _ in reversed(list(self.known.values())):
            for call in (given or {}).get("tool_calls") or []:
                if call["id"] == result["tool_call_id"]:
                    return call["function"]["name"]
        return None

    def answer(self, shown: Sequence[BaseMessage], lasts: bool = True) -> list[Any]:
        """What ctxbench is told of a list of messages that the library shows."""
        named = {id(made) for given, made in self.known.values() if given is None}
        new = [m for m in shown if m.id not in self.known and id(m) not in named]
        self.unnamed = new if lasts else []
        return [self.entry(m) for m in shown]

    def entry(self, m: BaseMessage) -> Any:
        """What ctxbench is told of a message: an id, an altered message, or new text."""
        given, made = self.known.get(m.id or "", (None, None))
        if given is None:
            role = "assistant" if isinstance(m, AIMessage) else "user"
            return self.own.setdefault(id(m), (m, {"role": role, "content": m.content}))[1]
        if m is made:
            return m.id
        altered = {**given, "content": m.content or given["content"] and ""}
        if isinstance(m, AIMessage) and (calls := {c["id"]: c for c in m.tool_calls}):
            altered["tool_calls"] = [with_arguments(c, calls) for c in given["tool_calls"]]
        return altered


def with_arguments(call: dict[str, Any], parsed: dict[str, Any]) -> dict[str, Any]:
    """A call with the arguments that LangChain has; those that it could not read stay."""
    if call["id"] not in parsed:
        return call
    arguments = parsed[call["id"]]["args"]
    if arguments == json.loads(call["function"]["arguments"] or "{}"):
        return call
    function = {**call["function"], "arguments": json.dumps(arguments)}
    return {**call, "function": function}


def size(given: str | float, scale: float) -> Any:
    """A size as the library takes it: `fraction:0.8` is `("fraction", 0.8)`.

    Tokens written out are a constant of the user's, scaled like those of the library.
    """
    kind, colon, number = str(given).rpartition(":")
    try:
        value = float(number)
    except ValueError:
        value = 0
    if not colon:
        kind = "fraction" if value < 1 else "tokens"
    if value <= 0 or kind not in ("fraction", "tokens", "messages"):
        raise ValueError(f"{given!r} is no size; expected fraction:0.8, tokens:4000 or messages:20")
    if kind == "fraction":
        return kind, value
    return kind, int(value * scale) if colon and kind == "tokens" else int(value)
