"""The condenser of OpenHands' SDK (Python 3.12): `python3 -m ctxbench.adapters.openhands`.

What runs is `LLMSummarizingCondenser.condense(…)` on a view of the event log, before each request
as the SDK's agent does it: a condensation goes into the log, and the view is looked at again.
When the provider refuses the prompt, a request for a condensation goes into the log first. Sizes
are those of the SDK's default agent, in events: the system prompt is one, and so is each call.

Tokens are counted by ctxbench in place of litellm's tables. A hard reset of this version forgets
the system prompt, too; here it stays.
"""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from typing import Any

# Read at the import: nothing is to be fetched, nor is a banner to be shown.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
# Windows of small scenarios are below the 16,384 tokens that it asks for.
os.environ.setdefault("ALLOW_SHORT_CONTEXT_WINDOWS", "true")

from litellm.types.utils import ModelResponse
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.condenser.base import NoCondensationAvailableException
from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent, SystemPromptEvent
from openhands.sdk.event.condenser import (
    Condensation,
    CondensationRequest,
    CondensationSummaryEvent,
)
from openhands.sdk.llm import LLM, LLMResponse, Message, MessageToolCall, TextContent
from openhands.sdk.llm.utils.metrics import MetricsSnapshot
from openhands.sdk.tool.schema import Action, Observation
from pydantic import PrivateAttr

from ctxbench import Context, ModelError, Session, Strategy
from ctxbench.adapters import unseen


class Model(LLM):
    """The model of the run, as an LLM of the SDK."""

    _adapter: Any = PrivateAttr(default=None)

    def completion(self, messages: list[Message], *_: Any, **__: Any) -> LLMResponse:
        asked = [{"role": m.role, "content": text(m.content)} for m in messages]
        for left in range(5, -1, -1):  # The SDK tries five times again.
            try:
                reply = self._adapter.ctx.complete(asked)
                break
            except ModelError as e:
                if not left or e.class_ not in ("rate_limited", "server", "stream"):
                    raise
        return LLMResponse(
            message=Message(role="assistant", content=[TextContent(text=reply.text)]),
            metrics=MetricsSnapshot(
                model_name=self.model,
                accumulated_cost=0.0,
                max_budget_per_task=None,
                accumulated_token_usage=None,
            ),
            raw_response=ModelResponse(id="reply"),
        )

    def get_token_count(self, messages: list[Message], *_: Any, **__: Any) -> int:
        shown = [self._adapter.shown(m) for m in messages if m.role != "system"]
        return self._adapter.ctx.count_tokens(shown)


class Result(Observation):
    """What a tool returned."""


class OpenHands(Strategy):
    name = "openhands-sdk"
    version = version("openhands-sdk")

    max_size: int = 80
    keep_first: int = 4
    max_tokens: int | None = None
    minimum_progress: float = 0.1

    def start(self, session: Session) -> None:
        self.llm = Model(model=session.model.id, max_input_tokens=session.model.window)
        self.llm._adapter = self
        settings = {k: getattr(self, k) for k in self.defaults()}
        self.condenser = LLMSummarizingCondenser(llm=self.llm, **settings)
        #: The log, which only grows.
        self.events: list[Any] = [
            SystemPromptEvent(system_prompt=TextContent(text=session.system), tools=[])
        ]
        self.known: set[str] = set()
        #: By call: the event that it is, and the tool's name.
        self.calls: dict[str, tuple[str, str]] = {}
        #: By call: the id of its result.
        self.results: dict[str, str] = {}
        self.actions: dict[str, type[Action]] = {}
        #: Summaries by the ids of their events.
        self.own: dict[str, dict[str, Any]] = {}

    def context(self, ctx: Context) -> list[Any]:
        self.take(ctx)
        while True:
            view = View.from_events(self.events)
            condensed = self.condenser.condense(view, agent_llm=self.llm)
            if not isinstance(condensed, Condensation):
                return self.entries(condensed.events)
            self.events.append(condensed)

    def overflow(self, ctx: Context) -> list[Any] | None:
        self.take(ctx)
        self.events.append(CondensationRequest())
        try:
            return self.context(ctx)
        except NoCondensationAvailableException as e:  # The agent ends with an error.
            return ctx.log(e)

    def take(self, ctx: Context) -> None:
        """Appends to the log what entered since the last call."""
        self.ctx = ctx
        for m in unseen(ctx, self.known):
            self.events += self.told(m)

    def told(self, m: dict[str, Any]) -> list[Any]:
        """A message as events; `m7/1` is the second call of `m7`."""
        id, said = m["id"], [TextContent(text=text(m.get("content")))]
        if m["role"] == "tool":
            action, name = self.calls[m["tool_call_id"]]
            self.results[m["tool_call_id"]] = id
            return [
                ObservationEvent(
                    id=id,
                    observation=Result(content=said),
                    action_id=action,
                    tool_name=name,
                    tool_call_id=m["tool_call_id"],
                )
            ]
        calls = m.get("tool_calls") or []
        if not calls:
            agent = m["role"] == "assistant"
            message = Message(role="assistant" if agent else "user", content=said)
            source = "agent" if agent else "user"
            return [MessageEvent(id=id, source=source, llm_message=message)]
        events = []
        for n, call in enumerate(calls):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            self.calls[call["id"]] = f"{id}/{n}", name
            events.append(
                ActionEvent(
                    id=f"{id}/{n}",
                    thought=[] if n or not said[0].text else said,
                    # A summary gets the class and the name of the call only.
                    action=self.action(name),
                    tool_name=name,
                    tool_call_id=call["id"],
                    tool_call=MessageToolCall(
                        id=call["id"], name=name, arguments=arguments, origin="completion"
                    ),
                    llm_response_id=id,
                )
            )
        return events

    def action(self, tool: str) -> Action:
        """The action of a tool, named as those of the SDK: `file_editor`, `FileEditorAction`."""
        if tool not in self.actions:
            words = "".join(w[:1].upper() + w[1:] for w in re.split(r"\W|_", tool))
            self.actions[tool] = type(f"{words}Action", (Action,), {"__module__": __name__})
        return self.actions[tool]()

    def shown(self, m: Message) -> Any:
        """A message to be counted: by its id where its calls tell it, so with its thinking."""
        if m.tool_calls:
            return self.calls[m.tool_calls[0].id][0].split("/")[0]
        if m.tool_call_id:
            return self.results[m.tool_call_id]
        return {"role": m.role, "content": text(m.content)}

    def entries(self, events: list[Any]) -> list[Any]:
        """What ctxbench is told of a view."""
        entries: list[Any] = []
        for e in events:
            if isinstance(e, CondensationSummaryEvent):
                entries.append(self.own.setdefault(e.id, {"role": "user", "content": e.summary}))
            elif not isinstance(e, SystemPromptEvent) and (id := e.id.split("/")[0]) not in entries:
                entries.append(id)
        return entries


def text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    given = [p.get("text") if isinstance(p, dict) else getattr(p, "text", None) for p in content]
    return "\n".join(filter(None, given))


if __name__ == "__main__":
    OpenHands.run()
