"""The summarisation of Deep Agents: `python3 -m ctxbench.adapters.deepagents`.

The middleware that `create_deep_agent` puts into every agent runs unmodified. It wraps each model
call and recovers from a refusal inside, so its call waits in a thread of its own while ctxbench
sends the request. What it evicts goes to a real file; no recorded agent reads it back.

Not part of this row: the filesystem middleware, which moves large tool results to files at once,
and the tool with which a model may compact by itself.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import threading
from importlib.metadata import version
from queue import Queue
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import (
    SUMMARIZATION_SESSION_ID_KEY,
    SummarizationMiddleware,
    compute_summarization_defaults,
)
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from ctxbench import Context, Keep, Session

from ._langchain import Adapter, size


class DeepAgents(Adapter):
    name = "deepagents"
    version = version("deepagents")

    #: As in the adapter for LangChain. By default 85 % of the window, and 10 % are kept.
    trigger: str | float | None = None
    keep: str | float | None = None
    #: Tokens; none by default.
    trim_tokens_to_summarize: int | None = None
    #: Output that the chat model asks for, which the library keeps free. Most ask for none;
    #: ChatAnthropic asks for all that the model can write, such as 64k.
    max_tokens: int | None = None

    def start(self, session: Session) -> None:
        super().start(session)
        self.model.max_tokens = self.max_tokens
        self.folder = tempfile.TemporaryDirectory(prefix="deepagents-")
        given: dict[str, Any] = dict(compute_summarization_defaults(self.model))
        for setting in ("trigger", "keep"):
            if (value := getattr(self, setting)) is not None:
                given[setting] = size(value, session.scale)
        self.middleware = SummarizationMiddleware(
            self.model,
            backend=FilesystemBackend(root_dir=self.folder.name, virtual_mode=True),
            trim_tokens_to_summarize=self.trim_tokens_to_summarize,
            **given,
        )
        tools = [(t.name, t.description, t.input_schema) for t in session.tools]
        self.tools: Any = [dict(zip(("name", "description", "parameters"), t)) for t in tools]
        # State of the library with all messages. Its session name is random and appears in the
        # summary, so it is replaced: every run must have the same text.
        hexadecimal = hashlib.md5(session.id.encode()).hexdigest()
        self.state: dict[str, Any] = {
            "messages": [],
            SUMMARIZATION_SESSION_ID_KEY: f"session_{hexadecimal}",
        }
        self.call: Call | None = None
        # Messages of its request.
        self.sent: list[AnyMessage] = []

    def context(self, ctx: Context) -> Keep | None:
        self.take(ctx)
        if self.call is not None and not self.fresh:
            return self.answered(self.sent)
        self.end(RuntimeError("the request failed"))
        self.state["messages"] += [self.known[m["id"]][1] for m in self.fresh]
        request = ModelRequest(
            model=self.model,
            messages=list(self.state["messages"]),
            system_message=SystemMessage(ctx.session.system),
            tools=self.tools,
            state=self.state,  # type: ignore[arg-type]
        )
        self.call = Call(self.middleware, request)
        return self.shown()

    def overflow(self, ctx: Context) -> Keep | None:
        self.take(ctx)
        if self.call is None:
            return None
        self.call.outcomes.put(ContextOverflowError("the prompt is too long"))
        try:
            return self.shown()
        except Exception as e:  # It gives up, and so does the turn.
            ctx.log(e)
            return None

    def reply(self, ctx: Context) -> None:
        self.end(None)

    def shown(self) -> Keep:
        """What the library wants to send next."""
        assert self.call is not None
        what, value = self.call.events.get()
        if what == "failed":
            self.call = None
            raise value
        self.sent = value
        return self.answered(value)

    def answered(self, sent: list[AnyMessage]) -> Keep:
        # Only with the reply becomes the summary part of the state. It is answered for good once
        # it is: a request that fails takes it with it.
        event = self.state.get("_summarization_event")
        lasting = [*self.state["messages"], *([event["summary_message"]] if event else [])]
        lasts = {id(m) for m in lasting} >= {id(m) for m in sent}
        return Keep(self.answer(sent, lasts), scope="state" if lasts else "request")

    def end(self, error: Exception | None) -> None:
        """The request that waits was answered, or failed."""
        if self.call is None:
            return
        self.call.outcomes.put(error)
        what, value = self.call.events.get()
        self.call = None
        if what == "done" and isinstance(value, ExtendedModelResponse) and value.command:
            update: Any = dict(value.command.update or {})
            clipped = {m.id: m for m in update.pop("messages", [])}
            messages = self.state["messages"]
            self.state = {
                **self.state,
                **update,
                "messages": [clipped.get(m.id, m) for m in messages],
            }


class Call(threading.Thread):
    """A call of `wrap_model_call`, which waits while its request is on the way."""

    def __init__(self, middleware: Any, request: ModelRequest[Any]) -> None:
        super().__init__(daemon=True)
        self.middleware, self.request = middleware, request
        # Events: `shown` with messages, then `done` or `failed`.
        self.events: Queue[tuple[str, Any]] = Queue()
        self.outcomes: Queue[Exception | None] = Queue()
        self.start()

    def run(self) -> None:
        try:
            self.events.put(("done", self.middleware.wrap_model_call(self.request, self.send)))
        except Exception as e:
            self.events.put(("failed", e))

    def send(self, request: ModelRequest[Any]) -> ModelResponse:
        shown: list[AnyMessage] = request.messages
        self.events.put(("shown", shown))
        if (error := self.outcomes.get()) is not None:
            raise error
        return ModelResponse(result=[AIMessage("")])


if __name__ == "__main__":
    if len(sys.argv) != 1:
        sys.exit("usage: python3 -m ctxbench.adapters.deepagents")
    DeepAgents.run()
