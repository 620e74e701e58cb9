"""Context strategies for ctxbench, written in Python.

>>> from ctxbench import strategy
>>> @strategy
... def keep_last(messages, ctx, keep: int = 20):
...     return messages[-keep:]

The protocol underneath is described in docs/exec.md of the repository.
"""

from .answer import Again, Breakpoint, Compaction, Fail, Keep, Trigger
from .context import Context, ModelError, Reply, RequestError, Task
from .session import Cache, Call, Model, Prices, Session, Tool, Usage
from .strategy import Strategy, strategy
from .wire import ProtocolError
from .run import run

__all__ = [
    "Again",
    "Breakpoint",
    "Cache",
    "Call",
    "Compaction",
    "Context",
    "Fail",
    "Keep",
    "Model",
    "ModelError",
    "Prices",
    "ProtocolError",
    "Reply",
    "RequestError",
    "Session",
    "Strategy",
    "Task",
    "Tool",
    "Trigger",
    "Usage",
    "run",
    "strategy",
]
