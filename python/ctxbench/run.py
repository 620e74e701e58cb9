"""The loop between ctxbench and a strategy."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Sequence

from .answer import Again, Entry, Fail, Keep
from .context import Context, ModelError, RequestError
from .session import Call, Model, Session, Tool, Usage, pick
from .state import State
from .strategy import FunctionStrategy, Strategy, checked
from .wire import NO_METHOD, PROGRAM, WRONG_PARAMS, Closed, Wire, take_stdio

Runnable = FunctionStrategy | type[Strategy]


def run(what: Runnable | None = None) -> None:
    """Speaks to ctxbench on standard input and output until it says goodbye.

    Without an argument it runs the one strategy of the program.
    """
    if what is None:
        what = find(sys.modules["__main__"], None)
    if sys.stdin.isatty():
        sys.exit(
            "This program is started by ctxbench, which speaks to it on standard input:\n"
            f"  ctxbench --strategy 'mine=exec:python3 {sys.argv[0]}' login-bug\n"
            f"or tried without it: python3 -m ctxbench.check {sys.argv[0]}"
        )
    serve(what.type if isinstance(what, FunctionStrategy) else what, take_stdio())


def load(path: str) -> Runnable:
    """The strategy of a file, given as `mine.py` or `mine.py:name`."""
    file, colon, name = path.rpartition(":")
    if not colon or name.endswith(".py"):
        file, name = path, ""
    if not os.path.isfile(file):
        raise SystemExit(f"{file}: no such file; expected FILE.py or FILE.py:NAME")
    sys.path.insert(0, str(Path(file).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return find(module, name or None)


def find(module: ModuleType, name: str | None) -> Runnable:
    """The strategy of a module: the named one, or the only one that it defines."""
    found: dict[str, Runnable] = {n: v for n, v in vars(module).items() if is_strategy(v, module)}
    if name is not None:
        if name not in found:
            raise SystemExit(f"{module.__name__}: no strategy {name!r}; it has {list(found)}")
        return found[name]
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise SystemExit(
            f"{module.__name__}: expected one strategy (a function with @strategy, or a subclass "
            f"of Strategy), found {names}; name the one you mean: FILE.py:NAME"
        )
    return next(iter(found.values()))


def is_strategy(value: Any, module: ModuleType) -> bool:
    if isinstance(value, FunctionStrategy):
        return value.function.__module__ == module.__name__
    return (
        isinstance(value, type)
        and issubclass(value, Strategy)
        and value.__module__ == module.__name__
    )


class Refused(Exception):
    """A call that the program cannot take."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def serve(kind: type[Strategy], wire: Wire) -> None:
    """Answers calls until `shutdown` or the end of the input."""
    program = Program(kind, wire)
    while True:
        try:
            call = wire.receive()
        except Closed:
            return
        answer: dict[str, Any]
        try:
            answer = {"result": program.answer(call["method"], call.get("params") or {})}
        except Closed:
            return
        except Refused as e:
            answer = {"error": {"code": e.code, "message": str(e)}}
        except Exception as e:
            traceback.print_exc()
            answer = {"error": {"code": PROGRAM, "message": described(e)}}
        if "id" in call:
            try:
                wire.send({"id": call["id"], **answer})
            except (TypeError, ValueError) as e:
                problem = f"the answer to `{call['method']}` cannot be written as JSON: {e}"
                wire.send({"id": call["id"], "error": {"code": PROGRAM, "message": problem}})
        if call["method"] == "shutdown":
            return


def described(error: Exception) -> str:
    """An error in its words, with the place in the strategy's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    here = os.path.dirname(__file__) + os.sep
    adapters = os.path.join(here, "adapters")
    own = [f for f in frames if not f.filename.startswith(here) or adapters in f.filename]
    place = (own or frames)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno} in {place.name}"
    return f"{type(error).__name__}: {error} ({where})"


class Program:
    """A strategy with the state of its conversation."""

    def __init__(self, kind: type[Strategy], wire: Wire) -> None:
        self._kind, self._wire = kind, wire
        self._state = State()
        self._strategy: Strategy
        self._ctx: Context

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return self._initialize(params)
        if method == "shutdown":
            return {}
        if not hasattr(self, "_ctx"):
            raise Refused(WRONG_PARAMS, f"`{method}` before `initialize`")
        match method:
            case "context":
                return self._context(params)
            case "admit":
                self._ctx.call = called(params.get("call"))
                message = self._strategy.admit(self._ctx, params["message"])
                return {} if message is None else {"message": without_id(message)}
            case "reply" | "turn_end":
                usage = params.get("usage")
                self._ctx.usage = pick(Usage, usage) if usage else None
                self._ctx.stop_reason = params.get("stop_reason")
                if getattr(self._strategy, method)(self._ctx) is not None:
                    raise Refused(WRONG_PARAMS, "expected None; `after_turn` can return messages")
                return {}
            case "error":
                return flow(self._strategy.error(self._ctx, RequestError(params)))
            case "rewind":
                self._state.rewind(params["to"])
                self._strategy.rewind(self._ctx, params["to"])
                return {}
        raise Refused(NO_METHOD, f"no method `{method}`")

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        kind = self._kind
        name = kind.name or kind.__name__
        if params["protocol"] != 1:
            raise Refused(
                WRONG_PARAMS,
                f"this kit speaks protocol 1, ctxbench {params['protocol']}; update the kit: "
                "pip install -U ctxbench",
            )
        if kind.dialect not in params["dialects"]:
            raise Refused(
                WRONG_PARAMS,
                f"{name} speaks {kind.dialect!r}, ctxbench offers {params['dialects']}",
            )
        given = params["session"]
        session = Session(
            id=given["id"],
            agent=given.get("agent"),
            tools=[pick(Tool, t) for t in given.get("tools") or []],
            system=given.get("system") or "",
            model=Model.read(params["model"]),
            scale=params["scale"],
            settings=params.get("settings") or {},
        )
        self._strategy = kind()
        self._strategy.session = session
        try:
            self._strategy.configure(checked(session.settings, kind.defaults()))
        except ValueError as e:
            raise Refused(WRONG_PARAMS, f"{name}: {e}") from None
        self._ctx = Context(self._wire, session, self._state, self._strategy.dialect)
        self._strategy.start(session)
        strategy = self._strategy
        answer = {
            "name": strategy.name or kind.__name__,
            "version": strategy.version,
            "dialect": strategy.dialect,
            "moments": kind.moments(),
        }
        return {**answer, "join_results": True} if strategy.join_results else answer

    def _context(self, params: dict[str, Any]) -> dict[str, Any]:
        self._ctx._told(params)
        moment = params["reason"]
        if moment not in ("overflow", "manual", "idle", "after_turn"):
            moment = "context"
        try:
            said = getattr(self._strategy, moment)(self._ctx)
        except Exception as e:
            # As in a user's own program: an unhandled model error ends the turn.
            if not is_of_model(e):
                raise
            said = Fail(f"{type(e).__name__}: {e}")
        if isinstance(said, Fail):
            return {"fail": said.text}
        keep = said if isinstance(said, Keep) else Keep(said)
        answer: dict[str, Any] = {
            "compaction": keep.compaction and filled(keep.compaction),
            "trigger": keep.trigger and filled(keep.trigger),
            "breakpoints": keep.breakpoints and [filled(b) for b in keep.breakpoints],
            "params": keep.params,
        }
        answer = {k: v for k, v in answer.items() if v is not None}
        if keep.messages is None or self._state.is_same(keep.messages):
            return {"unchanged": True, **answer}
        return {**self._shown(keep.messages, keep.scope or self._strategy.scope), **answer}

    def _shown(self, messages: Sequence[Entry], scope: str) -> dict[str, Any]:
        if not isinstance(messages, (list, tuple)):
            raise TypeError(
                f"the answer is {type(messages).__name__}; expected a list of messages, a Keep, "
                "or None for no change"
            )
        entries = [self._state.entry(m) for m in messages]
        if entries == [m.get("id") for m in self._state.messages]:
            return {"unchanged": True}
        named = [e if isinstance(e, str) else e.get("id") for e in entries]
        seen: set[str] = set()
        for id in filter(None, named):
            if id in seen:
                raise ValueError(f"message {id!r} stands twice in the answer")
            seen.add(id)
        self._state.adopt(messages, entries, stays=scope == "state")
        return {"keep": entries, "scope": scope}


def is_of_model(error: BaseException | None) -> bool:
    """Whether a model that failed is behind an error."""
    while error is not None and not isinstance(error, ModelError):
        error = error.__cause__ or error.__context__
    return error is not None


def called(call: dict[str, Any] | None) -> Call | None:
    """The call of a result."""
    return Call(call["name"], call["arguments"]) if call else None


def filled(part: Any) -> dict[str, Any]:
    """The fields of a part of an answer that say something."""
    said = {k: v for k, v in vars(part).items() if v is not None}
    return {k: list(v) if k == "ids" else v for k, v in said.items()}


def without_id(message: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in message.items() if k != "id"}


def flow(said: Again | Fail | None) -> dict[str, Any]:
    """How the answer to `error` is written."""
    if said is None:
        return {}
    if isinstance(said, Again):
        return {"again": True}
    if isinstance(said, Fail):
        return {"fail": said.text}
    raise TypeError(f"`error` answered {said!r}; expected Again(), Fail('why') or None")
