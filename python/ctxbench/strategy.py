"""How a strategy is written: as a function, or as a class with moments and a state."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Sequence, Union, overload

from .answer import Again, Fail, Keep, Message, Scope
from .context import Context, RequestError
from .session import Session

Answer = Union[Keep, Sequence[Union[Message, str]], None]


class Strategy:
    """A strategy with moments. One object serves one conversation.

    Override `context` and whatever else is of interest: which moments ctxbench tells follows
    from which methods are overridden. Annotated class attributes are settings, with their
    defaults: `keep: int = 20`.
    """

    # Name in the answer to `initialize`. The default is the name of the class or function.
    name = ""
    version = "1"
    #: `openai-chat`, `openai-responses` or `anthropic`: how messages look.
    dialect = "openai-chat"
    # `state`: an answer applies to all later requests. `request`: to one request.
    scope: Scope = "state"
    #: With the dialect `anthropic`, the results of one reply are one message.
    join_results = False
    session: Session

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in cls.__dict__.items():
            if callable(getattr(Strategy, name, None)):
                refuse_async(value, f"{cls.__name__}.{name}")
        for name in cls.__dict__.get("__annotations__", {}):
            if callable(getattr(Strategy, name, None)):
                raise TypeError(
                    f"{cls.__name__}: the setting `{name}` has the name of a method of Strategy; "
                    f"rename it, for example to `{name}_`"
                )

    def start(self, session: Session) -> None:
        """The session begins, or goes on; settings are in place."""

    def context(self, ctx: Context) -> Answer:
        """A request is about to be sent: the messages it is to show; None for no change."""
        return None

    def overflow(self, ctx: Context) -> Answer:
        """The provider refused the prompt as too large. No change ends the turn."""
        return self.context(ctx)

    def manual(self, ctx: Context) -> Answer:
        """The user asks for a compaction, perhaps with `ctx.instructions`."""
        return None

    def idle(self, ctx: Context) -> Answer:
        """Nothing happened for `ctx.idle_ms`."""
        return None

    def after_turn(self, ctx: Context) -> Answer:
        """The turn is over, and the answer applies to later requests; None for no change."""
        return None

    def admit(self, ctx: Context, message: Message) -> Message | None:
        """The result of `ctx.call` before it enters; None lets it in as it is."""
        return None

    def reply(self, ctx: Context) -> None:
        """A reply came: `ctx.usage`, `ctx.stop_reason`."""

    def turn_end(self, ctx: Context) -> None:
        """The turn is over: `ctx.usage`, `ctx.stop_reason`."""

    def error(self, ctx: Context, error: RequestError) -> Again | Fail | None:
        """A request failed; None for the rule of every other row."""
        return None

    def rewind(self, ctx: Context, to: str | None) -> None:
        """The conversation went back; `ctx.messages` is already what is left."""

    @classmethod
    def run(cls) -> None:
        """Speaks to ctxbench until it says goodbye."""
        from .run import run

        run(cls)

    @classmethod
    def moments(cls) -> list[str]:
        """The moments that ctxbench is to tell."""
        return [m for m in MOMENTS if getattr(cls, m) is not getattr(Strategy, m)]

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Settings with their defaults."""
        own: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            if base is not Strategy and issubclass(base, Strategy):
                names = base.__dict__.get("__annotations__", {})
                own |= {n: getattr(cls, n, None) for n in names if is_setting(n)}
        return own

    def configure(self, settings: dict[str, Any]) -> None:
        """Takes settings that were checked."""
        for key, value in settings.items():
            setattr(self, key, value)


def refuse_async(function: Any, name: str) -> None:
    """Refuses a coroutine function: nobody would await its answer."""
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{name}: the function is async; use def")


def is_setting(name: str) -> bool:
    """Whether an annotated attribute of a strategy can be set by people."""
    return not name.startswith("_") and not hasattr(Strategy, name) and name != "session"


def checked(settings: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Settings that exist, of the types of their defaults; any other is a `ValueError`."""
    for key in settings:
        if key not in known:
            names = ", ".join(f"`{k}` ({v!r})" for k, v in known.items()) or "none"
            raise ValueError(f"there is no setting `{key}`; settings and defaults: {names}")
    return {k: fitting(k, v, known[k]) for k, v in settings.items()}


MOMENTS = ("admit", "reply", "turn_end", "after_turn", "error", "rewind", "idle", "manual")
REQUIRED = inspect.Parameter.empty


def fitting(key: str, value: Any, default: Any) -> Any:
    """A setting of the type of its default."""
    if default is None:
        return value
    wanted = type(default)
    if wanted is str:
        return value if isinstance(value, str) else str(value).lower()
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted and wanted in (bool, int, float):
        raise ValueError(
            f"setting `{key}` is {value!r}, expected {KINDS[wanted]} such as {default!r}"
        )
    return value


KINDS = {bool: "true or false", int: "a whole number", float: "a number"}


class FunctionStrategy:
    """A function from messages to messages, as `@strategy` makes it. Still callable."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        refuse_async(function, function.__name__)
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        takes = list(inspect.signature(function).parameters.values())
        #: The second parameter is the context if it has no default.
        second = takes[1:2]
        self.wants_context = bool(second) and second[0].default is REQUIRED
        settings = takes[2:] if self.wants_context else takes[1:]
        if not takes or any(p.default is REQUIRED for p in settings):
            raise TypeError(
                f"{function.__name__}: a strategy takes (messages), (messages, ctx) and settings "
                "behind them, each with a default"
            )
        self.settings = {p.name: p.default for p in settings}
        extra = options.pop("moments", ())
        options["name"] = options.get("name") or function.__name__.replace("_", "-")
        self.type: type[Strategy] = type(function.__name__, (_Function,), {"_of": self, **options})
        if unknown := set(extra) - {"after_turn", "idle", "manual"}:
            raise TypeError(
                f"{function.__name__}: a function can be asked at the moments `after_turn`, `idle` "
                f"and `manual`, not {sorted(unknown)}; write a class for the others"
            )
        for moment in extra:
            setattr(self.type, moment, lambda self, ctx: self.context(ctx))

    def __call__(self, *args: Any, **settings: Any) -> Any:
        return self.function(*args, **settings)

    def run(self) -> None:
        """Speaks to ctxbench until it says goodbye."""
        self.type.run()


class _Function(Strategy):
    """What a function is run as."""

    _of: FunctionStrategy

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        return cls._of.settings

    def configure(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    def context(self, ctx: Context) -> Answer:
        given = (ctx.messages, ctx) if self._of.wants_context else (ctx.messages,)
        answer: Answer = self._of.function(*given, **self._settings)
        return answer


@overload
def strategy(function: Callable[..., Any]) -> FunctionStrategy: ...
@overload
def strategy(
    *,
    name: str = "",
    version: str = "1",
    dialect: str = "openai-chat",
    scope: Scope = "state",
    moments: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], FunctionStrategy]: ...


def strategy(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a strategy of a function `messages -> messages`.

    Its second parameter, if it has no default, is the `Context`; the parameters behind are
    settings with their defaults. `moments`: also ask when time passes (`idle`) or when the user
    asks for a compaction (`manual`).
    """
    if function is not None:
        return FunctionStrategy(function, **options)
    return lambda f: FunctionStrategy(f, **options)
