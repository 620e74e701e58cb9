"""LangChain's middleware: `python3 -m ctxbench.adapters.langchain summarization|context-editing`.

`SummarizationMiddleware` and `ContextEditingMiddleware` run unmodified, called as an agent calls
them: `before_model` on the messages of its state, `wrap_model_call` around each request. Neither
answers a refusal of the provider; it ends the turn.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, RemoveMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from ctxbench import Compaction, Context, Keep, Session, Trigger

from ._langchain import Adapter, size


class Summarization(Adapter):
    name = "langchain-summarization"
    version = version("langchain")

    #: `fraction:0.8`, `tokens:4000`, `messages:50`; a bare number means tokens, one below 1 a
    #: fraction. The library's default is none, with which nothing ever happens.
    trigger: str | float | None = None
    keep: str | float = "messages:20"
    #: Tokens, `none` for no limit; 4000 by default.
    trim_tokens_to_summarize: str | float | None = None

    def start(self, session: Session) -> None:
        super().start(session)
        trim = self.trim_tokens_to_summarize
        self.limit = None if self.trigger is None else size(self.trigger, session.scale)
        self.middleware: Any = SummarizationMiddleware(
            self.model,
            trigger=self.limit,
            keep=size(self.keep, session.scale),
            trim_tokens_to_summarize=(
                None if trim == "none" else int(trim or 4_000 * session.scale)
            ),
        )

    def context(self, ctx: Context) -> Keep | None:
        messages = self.take(ctx)
        if not self.fresh:
            return None
        update = self.middleware.before_model({"messages": messages}, None)
        if update is None:
            return None
        shown = [m for m in update["messages"] if not isinstance(m, RemoveMessage)]
        gone = [i for i, m in self.known.items() if m[1] in messages and m[1] not in shown]
        assert self.limit is not None
        kind, limit = self.limit
        believed = len(messages) if kind == "messages" else self.middleware.token_counter(messages)
        limit = int(limit * ctx.model.window) if kind == "fraction" else limit
        return Keep(
            self.answer(shown),
            compaction=Compaction("summarise", "summarization", gone),
            trigger=Trigger("trigger", believed, limit) if kind != "messages" else None,
        )

    def overflow(self, ctx: Context) -> None:
        return None


class ContextEditing(Adapter):
    name = "langchain-context-editing"
    version = version("langchain")
    scope = "request"

    #: Tokens; 100000 by default.
    trigger: int | None = None
    clear_at_least: int = 0
    keep: int = 3
    clear_tool_inputs: bool = False
    #: Names with spaces between them.
    exclude_tools: str = ""
    placeholder: str = "[cleared]"
    #: `approximate` or `model`.
    token_count_method: str = "approximate"

    def start(self, session: Session) -> None:
        super().start(session)
        names = ("clear_at_least", "keep", "clear_tool_inputs", "placeholder")
        edit = ClearToolUsesEdit(
            trigger=self.trigger or int(100_000 * session.scale),
            exclude_tools=self.exclude_tools.split(),
            **{name: getattr(self, name) for name in names},
        )
        method: Any = self.token_count_method
        self.middleware = ContextEditingMiddleware(edits=[edit], token_count_method=method)
        self.limit, self.cleared = edit.trigger, 0

    def context(self, ctx: Context) -> Keep:
        messages = self.take(ctx)
        shown: list[Any] = []

        def send(request: Any) -> ModelResponse:
            shown.extend(request.messages)
            return ModelResponse(result=[AIMessage("")])

        system = SystemMessage(ctx.session.system)
        request = ModelRequest(model=self.model, messages=messages, system_message=system)
        self.middleware.wrap_model_call(request, send)
        # The library copies every message; those that it did not alter are still equal.
        shown = [old if new == old else new for new, old in zip(shown, messages)]
        cleared = sum(new is not old for new, old in zip(shown, messages))
        counts = self.cleared != cleared and self.token_count_method == "approximate"
        self.cleared = cleared
        if not cleared:
            return Keep()
        believed = count_tokens_approximately(messages) if counts else 0
        return Keep(
            self.answer(shown),
            compaction=Compaction("clear", "clear_tool_uses"),
            trigger=Trigger("trigger", believed, self.limit) if counts else None,
        )

    def overflow(self, ctx: Context) -> None:
        return None


if __name__ == "__main__":
    kinds = {"summarization": Summarization, "context-editing": ContextEditing}
    if len(sys.argv) != 2 or sys.argv[1] not in kinds:
        sys.exit("usage: python3 -m ctxbench.adapters.langchain summarization|context-editing")
    kinds[sys.argv[1]].run()
