"""Messages that cannot be changed in place.

A change in place would go unseen, because unchanged messages are recognised by identity. So it
is an error that says what to do instead.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(
        "messages are read-only; return an altered copy such as {**message, 'content': text}, "
        "or change a copy made with copy.deepcopy(message)"
    )


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes; its copies are plain dicts."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    pop = popitem = clear = update = setdefault = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {k: copy.deepcopy(v, memo) for k, v in self.items()}

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that refuses changes; its copies are plain lists."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = _refuse
    sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(v, memo) for v in self]

    def __reduce__(self) -> Any:
        return list, (list(self),)


def freeze(value: Any) -> Any:
    """A read-only copy, all the way down."""
    if isinstance(value, dict):
        return FrozenDict({k: freeze(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([freeze(v) for v in value])
    return value
