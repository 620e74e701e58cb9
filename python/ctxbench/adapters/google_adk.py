"""The event compaction of Google's Agent Development Kit, unmodified:
`python3 -m ctxbench.adapters.google_adk`.

What runs is its sliding window at the end of a turn and, with `token_threshold`, its compaction by
tokens before each request; then the request shows the events that its content processor leaves.
Parts of this are private in the library: another release may need changes here. The sizes of the
sliding window are those of its documentation. A prompt that the provider refuses ends the turn.
"""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from google.adk.apps import compaction
from google.adk.apps._configs import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.events.event import Event
from google.adk.flows.llm_flows.context import _compaction as shown
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.session import Session as AdkSession
from google.genai import types
from pydantic import PrivateAttr

from ctxbench import Context, Session, Strategy
from ctxbench.adapters import unseen

AGENT = "agent"


class Model(BaseLlm):
    """The model of the run, as one of the kit."""

    _adapter: Any = PrivateAttr(default=None)

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        asked = [{"role": "user", "content": said(c)} for c in llm_request.contents]
        text = self._adapter.ctx.complete(asked).text
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


class GoogleAdk(Strategy):
    name = "google-adk"
    version = version("google-adk")
    scope = "request"  # A call that was compacted may come back with its result.

    #: In turns of the user. 0 switches the sliding window off.
    compaction_interval: int = 3
    overlap_size: int = 1
    #: In tokens, with the number of events that stay. None: no compaction by tokens.
    token_threshold: int | None = None
    event_retention_size: int | None = None

    def start(self, session: Session) -> None:
        self.loop = asyncio.new_event_loop()
        model = Model(model=session.model.id)
        model._adapter = self
        given = {k: getattr(self, k) for k in self.defaults()}
        if not self.compaction_interval:
            given |= {"compaction_interval": None, "overlap_size": None}
        self.config = EventsCompactionConfig(summarizer=LlmEventSummarizer(llm=model), **given)
        self.log = AdkSession(id=session.id, app_name="ctxbench", user_id="user")
        self.turn = 0
        self.names: dict[str, str] = {}
        self.seen: set[str] = set()
        self.own: dict[str, dict[str, Any]] = {}

    async def append_event(self, session: Any, event: Event) -> None:
        self.log.events.append(event)

    def context(self, ctx: Context) -> list[Any]:
        self.take(ctx)
        compacted = compaction._run_compaction_for_token_threshold_config(
            config=self.config,
            session=self.log,
            session_service=self,  # type: ignore[arg-type]
            agent=None,  # type: ignore[arg-type]
            agent_name=AGENT,
        )
        self.loop.run_until_complete(compacted)
        events = self.log.events
        left = shown._process_compaction_events(events, AGENT)
        left = shown._recover_compacted_function_calls(left, events)
        return [self.entry(e) for e in left]

    def after_turn(self, ctx: Context) -> None:
        self.take(ctx)
        app = SimpleNamespace(events_compaction_config=self.config, root_agent=AGENT)

        async def compact() -> None:
            async for event in compaction._run_compaction_for_sliding_window(app, self.log, self):
                self.log.events.append(event)

        self.loop.run_until_complete(compact())

    def overflow(self, ctx: Context) -> None:
        self.take(ctx)

    def take(self, ctx: Context) -> None:
        self.ctx = ctx
        for m in unseen(ctx, self.seen):
            self.log.events.append(self.event(m))
        last = next((e for e in reversed(self.log.events) if e.author == AGENT), None)
        if last and ctx.request_tokens:
            used = types.GenerateContentResponseUsageMetadata
            last.usage_metadata = used(prompt_token_count=ctx.request_tokens)

    def event(self, m: dict[str, Any]) -> Event:
        self.turn += m["role"] == "user"
        parts = [types.Part(text=text)] if (text := plain(m.get("content"))) else []
        if m["role"] == "tool":
            id = m["tool_call_id"]
            response = {"result": text}
            made = types.FunctionResponse(id=id, name=self.names[id], response=response)
            parts = [types.Part(function_response=made)]
        for call in m.get("tool_calls") or []:
            function = call["function"]
            self.names[call["id"]] = function["name"]
            args = arguments(function["arguments"])
            asked = types.FunctionCall(id=call["id"], name=function["name"], args=args)
            parts.append(types.Part(function_call=asked))
        return Event(
            id=m["id"],
            author=AGENT if m["role"] == "assistant" else "user",
            content=types.Content(
                role="model" if m["role"] == "assistant" else "user", parts=parts
            ),
            invocation_id=f"turn-{self.turn}",
            timestamp=float(len(self.log.events) + 1),
        )

    def entry(self, e: Event) -> Any:
        if e.id in self.seen:
            return e.id
        text = said(e.content)
        return self.own.setdefault(text, {"role": "assistant", "content": text})


def said(content: Any) -> str:
    return "\n".join(p.text for p in content.parts if p.text)


def plain(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(p.get("text") or "" for p in content)


def arguments(text: str) -> dict[str, Any]:
    """Arguments of a call; a text that is not a JSON object, as of a free-form tool, is `input`."""
    try:
        read = json.loads(text or "{}")
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {"input": text}


if __name__ == "__main__":
    GoogleAdk.run()
