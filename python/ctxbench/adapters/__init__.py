"""Context managers of other libraries as strategies: the real code, unmodified.

    ctxbench --strategy 'x=exec:python3 -m ctxbench.adapters.langchain summarization' login-bug
"""

from __future__ import annotations

from typing import Any, Iterator

from ctxbench import Context


def unseen(ctx: Context, seen: set[str]) -> Iterator[dict[str, Any]]:
    """Yields the messages that entered since the last call, and adds their ids to `seen`.

    Messages that the adapter added itself are seen.
    """
    seen |= set(ctx.new_ids)
    for message in ctx.messages:
        if message["id"] not in seen:
            seen.add(message["id"])
            yield message
