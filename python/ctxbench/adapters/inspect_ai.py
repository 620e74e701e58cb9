"""Inspect's compaction: `python3 -m ctxbench.adapters.inspect_ai edit|trim|summary`.

The library runs unmodified, called as its `react()` agent calls it: `compaction(…)` before each
request, with the usage of each reply, and by force once if the provider refuses the prompt. When
its result is still above the threshold it raises an error, on which a sample of an evaluation
fails; so does the row.

Tokens are counted by ctxbench, as Inspect's providers for Anthropic and OpenAI ask theirs; for a
provider that it does not know, Inspect takes tiktoken's o200k_base and adds a tenth.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from itertools import groupby
from typing import Any, ClassVar

from inspect_ai.event import CompactionEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    CompactionEdit,
    CompactionStrategy,
    CompactionSummary,
    CompactionTrim,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    compaction,
    get_model,
    modelapi,
    set_model_info,
)
from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
from tenacity import RetryError, wait_none

from ctxbench import Context, Keep, ModelError, Session, Strategy, Trigger

# Key of the ctxbench id in a message of Inspect. Altered copies keep it.
ID = "ctxbench"
STOP = {"max_tokens": "max_tokens", "refusal": "content_filter"}


class Provider(ModelAPI):
    """The model of the run, as a provider of Inspect."""

    adapter: ClassVar[Inspect]

    async def generate(self, input, tools, tool_choice, config):
        system = any(m.role == "system" for m in input)
        entries = self.adapter.entries([m for m in input if m.role != "system"])
        try:
            reply = self.adapter.ctx.complete(
                entries, system=system, max_tokens=config.max_tokens, model=self.model_name
            )
        except ModelError as e:
            if e.class_ != "overflow":
                raise
            return ModelOutput.from_content(self.model_name, str(e), "model_length")
        stop = STOP.get(reply.stop_reason, "stop")
        return ModelOutput.from_content(self.model_name, reply.text, stop)

    async def count_tokens(self, input, config=None):
        return self.adapter.count(input)

    def max_tokens(self):
        session = self.adapter.session
        if session.model.provider != "anthropic":
            return None
        # The default of Inspect's own provider for it.
        return min(int(32_000 * session.scale), session.model.max_output)

    def should_retry(self, ex):
        return isinstance(ex, ModelError) and ex.class_ in ("rate_limited", "server", "stream")

    def retry_wait(self):
        return wait_none()  # The session has its own time.


@modelapi(name="ctxbench")
def provider() -> type[ModelAPI]:
    return Provider


class Params(ToolParams):
    """Only to be counted: there are more schemas than Inspect knows."""

    properties: dict[str, Any] = {}  # type: ignore[assignment]
    required: list[Any] = []
    additionalProperties: Any = False


class Inspect(Strategy):
    """One of Inspect's strategies; the settings are its parameters."""

    version = version("inspect_ai")
    dialect = "anthropic"  # The one that tells thinking from text.
    threshold: float = 0.9
    memory: bool = True

    def start(self, session: Session) -> None:
        Provider.adapter = self
        for name in ("main", "summary"):
            info = ModelInfo(context_length=session.model.window)
            set_model_info(f"ctxbench/{name}", info)
        self.target = get_model("ctxbench/main", config=GenerateConfig(max_retries=5))
        self.loop = asyncio.new_event_loop()
        self.handler: Any = None
        #: All messages, as an agent keeps them, and those that the model is shown.
        self.history: list[Any] = [ChatMessageSystem(content=session.system)]
        self.shown: list[Any] = []
        # Message and Inspect's message by ctxbench id; None for our own texts.
        self.known: dict[str, Any] = {}
        # Our own texts by Inspect's ids.
        self.own: dict[str, dict[str, Any]] = {}

    def context(self, ctx: Context, force: bool = False) -> Keep:
        self.take(ctx)
        before = last_compaction()
        self.shown, summary = self.loop.run_until_complete(self.compact(force))
        if summary is not None:
            self.history.append(summary)
        after, trigger = last_compaction(), None
        if after is not before and not force:
            limit = self.threshold * (1 if self.threshold > 1 else ctx.model.window)
            trigger = Trigger("threshold", after.tokens_before or 0, int(limit))
        shown = [m for m in self.shown if m.role != "system"]
        return Keep(self.entries(shown), trigger=trigger)

    def overflow(self, ctx: Context) -> Keep | None:
        if ctx.attempt > 1:
            return self.take(ctx)
        try:
            return self.context(ctx, force=True)
        except Exception as e:  # The agent ends without an error, for want of room.
            return ctx.log(e)

    def take(self, ctx: Context) -> None:
        """Appends to the history what entered since the last call."""
        self.ctx = ctx
        self.known |= dict.fromkeys(ctx.new_ids)
        for m in ctx.messages:
            if m["id"] not in self.known:
                self.history += self.messages(m)

    def reply(self, ctx: Context) -> None:
        if ctx.usage is not None and self.handler is not None:
            usage = ModelUsage(input_tokens=ctx.usage.input_tokens)
            output = ModelOutput(model="main", usage=usage)
            self.loop.run_until_complete(self.handler.record_output(self.shown, output))

    def strategy(self) -> CompactionStrategy:
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.defaults()}

    async def compact(self, force: bool) -> Any:
        if self.handler is None:
            prefix = [m for m in self.history if m.role == "system" or m.source == "input"]
            tools = [
                ToolInfo(
                    name=t.name, description=t.description, parameters=Params(**t.input_schema)
                )
                for t in self.session.tools
            ]
            self.handler = compaction(self.strategy(), prefix, tools, self.target)
        try:
            return await self.handler.compact_input(self.history, force)
        except RetryError as e:
            e.reraise()

    def count(self, input: Any) -> int:
        """Tokens of messages alone, the system message as if it were the user's."""
        if isinstance(input, str):
            input = [ChatMessageUser(content=input)]
        shown = [user(m.text) for m in input if m.role == "system"]
        shown += self.entries([m for m in input if m.role != "system"])
        return self.ctx.count_tokens(shown) - self.ctx.count_tokens([])

    def messages(self, m: dict[str, Any]) -> list[Any]:
        """What Inspect sees; the first message is the input of its sample."""
        made: list[Any] = []
        same = {"id": m["id"], "metadata": {ID: m["id"]}}
        blocks = content(m)
        if m["role"] == "assistant":
            calls = [call(b) for b in blocks if b["type"] == "tool_use"]
            said = [part(b) for b in blocks if b["type"] != "tool_use"]
            made = [ChatMessageAssistant(**same, content=said, tool_calls=calls or None)]
        else:
            for b in blocks:
                if b["type"] == "tool_result":
                    result = [part(p) for p in content(b)]
                    made.append(ChatMessageTool(content=result, tool_call_id=b["tool_use_id"]))
            said = [part(b) for b in blocks if b["type"] != "tool_result"]
            if said:
                source = None if self.known else "input"
                made.append(ChatMessageUser(content=said, source=source))
            for n, one in enumerate(made):
                one.id, one.metadata = f"{m['id']}/{n}", {ID: m["id"]}
        self.known[m["id"]] = m, made
        return made

    def entries(self, messages: list[Any]) -> list[Any]:
        """What ctxbench is told of them: ids, altered messages, and new texts."""
        entries: list[Any] = []
        for id, group in groupby(messages, lambda m: (m.metadata or {}).get(ID)):
            now = list(group)
            if id is None:
                entries += [self.own.setdefault(m.id, user(m.text)) for m in now]
                continue
            given, made = self.known[id]
            # A copy may say the same as before.
            same = now == made or (blocks := said(given, now)) == content(given)
            entries.append(id if same else {**given, "content": blocks})
        return entries


class Edit(Inspect):
    name = "inspect_ai-edit"

    keep_thinking_turns: int = 1
    keep_tool_uses: int = 3
    keep_tool_inputs: bool = True
    #: Names with spaces between them.
    exclude_tools: str = ""

    def strategy(self) -> CompactionStrategy:
        return CompactionEdit(**{**self.settings(), "exclude_tools": self.exclude_tools.split()})


class Trim(Inspect):
    name = "inspect_ai-trim"

    preserve: float = 0.8

    def strategy(self) -> CompactionStrategy:
        return CompactionTrim(**self.settings())


class Summary(Inspect):
    name = "inspect_ai-summary"

    #: `summary` for the provider's small model.
    model: str | None = None
    instructions: str | None = None
    prompt: str | None = None

    def strategy(self) -> CompactionStrategy:
        model = self.model and f"ctxbench/{self.model}"
        return CompactionSummary(**{**self.settings(), "model": model})


def last_compaction() -> Any:
    return transcript().history.find_last(lambda e: isinstance(e, CompactionEvent))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def content(m: dict[str, Any]) -> list[dict[str, Any]]:
    given = m.get("content") or []
    return [{"type": "text", "text": given}] if isinstance(given, str) else given


def part(b: dict[str, Any]) -> Any:
    """A block of a message."""
    if b["type"] == "thinking":
        return ContentReasoning(reasoning=b["thinking"], signature=b.get("signature"))
    if b["type"] == "redacted_thinking":
        return ContentReasoning(reasoning=b["data"], redacted=True)
    if b["type"] == "image":
        source = b["source"]
        data = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return ContentImage(image=source.get("url") or data)
    return ContentText(text=b.get("text") or "")


def call(b: dict[str, Any]) -> ToolCall:
    return ToolCall(id=b["id"], function=b["name"], arguments=dict(b["input"]))


def said(given: dict[str, Any], now: list[Any]) -> list[dict[str, Any]]:
    """The blocks of a message as Inspect shows it now."""
    results = {b.get("tool_use_id"): b for b in content(given)}
    blocks: list[dict[str, Any]] = []
    for m in now:
        if m.role == "tool":
            blocks.append({**results[m.tool_call_id], "content": m.text})
            continue
        for c in m.content_list:
            if c.type == "text" and c.text:
                blocks.append({"type": "text", "text": c.text})
            elif c.type == "reasoning" and c.redacted:
                blocks.append({"type": "redacted_thinking", "data": c.reasoning})
            elif c.type == "reasoning":
                thought = {"type": "thinking", "thinking": c.reasoning, "signature": c.signature}
                blocks.append(thought)
        for c in getattr(m, "tool_calls", None) or []:
            blocks.append(
                {"type": "tool_use", "id": c.id, "name": c.function, "input": c.arguments}
            )
    return blocks


if __name__ == "__main__":
    kinds = {"edit": Edit, "trim": Trim, "summary": Summary}
    if len(sys.argv) != 2 or sys.argv[1] not in kinds:
        sys.exit("usage: python3 -m ctxbench.adapters.inspect_ai edit|trim|summary")
    kinds[sys.argv[1]].run()
