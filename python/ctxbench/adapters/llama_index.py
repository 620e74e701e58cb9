"""Chat memories of LlamaIndex, unmodified:
`python3 -m ctxbench.adapters.llama_index memory|buffer|summary`.

What runs is `put(…)` for each message and `get()` before each request: `Memory`, which its agents
use by default, `ChatMemoryBuffer`, and `ChatSummaryMemoryBuffer`. A message that `get()` leaves out
may come back, so an answer applies to one request only. A prompt that the provider refuses ends
the turn. The system message of a summary is a message of the user here.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

from llama_index.core.llms import ChatMessage, ChatResponse, CustomLLM, LLMMetadata, TextBlock
from llama_index.core.memory import ChatMemoryBuffer, ChatSummaryMemoryBuffer, Memory
from pydantic import PrivateAttr

from ctxbench import Context, Session, Strategy
from ctxbench.adapters import unseen


class Model(CustomLLM):
    """The model of the run, as one of LlamaIndex."""

    _adapter: Any = PrivateAttr(default=None)

    @property
    def metadata(self) -> LLMMetadata:
        model = self._adapter.session.model
        return LLMMetadata(context_window=model.window, model_name=model.id, is_chat_model=True)

    def chat(self, messages: Any, **_: Any) -> ChatResponse:
        system = "\n\n".join(m.content or "" for m in messages if m.role == "system")
        asked = [{"role": "user", "content": m.content} for m in messages if m.role != "system"]
        text = self._adapter.ctx.complete(asked, system=system).text
        return ChatResponse(message=ChatMessage(role="assistant", content=text))

    def complete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    stream_complete = complete


class LlamaIndex(Strategy):
    version = version("llama-index-core")
    scope = "request"

    #: Tokens by its own tokenizer. Default: 30000 for `memory`, else three quarters of the window.
    token_limit: int | None = None

    def build(self, limit: int | None, llm: Model) -> Any:
        raise NotImplementedError

    def start(self, session: Session) -> None:
        llm = Model()
        llm._adapter = self
        self.memory = self.build(self.token_limit, llm)
        self.seen: set[str] = set()
        self.own: dict[str, dict[str, Any]] = {}

    def context(self, ctx: Context) -> list[Any]:
        self.take(ctx)
        return [self.entry(m) for m in self.memory.get()]

    def overflow(self, ctx: Context) -> None:
        self.take(ctx)

    def take(self, ctx: Context) -> None:
        self.ctx = ctx
        for m in unseen(ctx, self.seen):
            more = {"id": m["id"], "tool_calls": m.get("tool_calls")}
            if m["role"] == "tool":
                more["tool_call_id"] = m["tool_call_id"]
            made = [TextBlock(text=text(m.get("content")))]
            self.memory.put(ChatMessage(role=m["role"], blocks=made, additional_kwargs=more))

    def entry(self, m: Any) -> Any:
        if (name := m.additional_kwargs.get("id")) is not None:
            return name
        new = {"role": "user", "content": m.content}
        return self.own.setdefault(m.content, new)


class Recent(LlamaIndex):
    name = "llama-index-memory"

    def build(self, limit: int | None, llm: Model) -> Any:
        return Memory.from_defaults(token_limit=limit or int(30_000 * self.session.scale))


class Buffer(LlamaIndex):
    name = "llama-index-buffer"

    def build(self, limit: int | None, llm: Model) -> Any:
        return ChatMemoryBuffer.from_defaults(token_limit=limit, llm=llm)


class Summary(LlamaIndex):
    name = "llama-index-summary"

    def build(self, limit: int | None, llm: Model) -> Any:
        return ChatSummaryMemoryBuffer.from_defaults(token_limit=limit, llm=llm)


def text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(p.get("text") or "" for p in content)


KINDS: dict[str, type[Strategy]] = {"memory": Recent, "buffer": Buffer, "summary": Summary}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: python3 -m ctxbench.adapters.llama_index {'|'.join(KINDS)}")
    KINDS[sys.argv[1]].run()
