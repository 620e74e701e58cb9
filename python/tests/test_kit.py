"""What the kit writes, by docs/exec.md."""

import contextlib
import copy
import io
import unittest

from ctxbench import Breakpoint, Compaction, Keep, ModelError, Strategy, strategy
from fake import context, initialize, play, user

A, B, C = ("m1", user("a")), ("m2", user("b")), ("m3", user("c"))


def answers(function, *calls):
    """Answers to all calls but `initialize`."""
    made = function if isinstance(function, type) else strategy(function)
    return play(made, initialize(), *calls)[1:]


class Functions(unittest.TestCase):
    def test_says_who_it_is(self):
        @strategy(name="mine", version="3", moments=["manual", "idle"])
        def f(messages):
            return messages

        said = {"name": "mine", "version": "3", "dialect": "openai-chat"}
        self.assertEqual(play(f, initialize())[0], {**said, "moments": ["idle", "manual"]})
        self.assertEqual(f([1]), [1])

    def test_no_change(self):
        self.assertEqual(answers(lambda m: m, context(A)), [{"unchanged": True}])
        self.assertEqual(answers(lambda m: list(m), context(A)), [{"unchanged": True}])
        self.assertEqual(answers(lambda m: None, context(A)), [{"unchanged": True}])

    def test_messages_are_named_and_new_text_is_not(self):
        new = {"role": "user", "content": "new"}
        said = answers(lambda m: [m[0], new, {**m[1], "content": "B"}, m[2]], context(A, B, C))
        altered = {"id": "m2", "message": user("B")}
        self.assertEqual(said[0]["keep"], ["m1", {"message": new}, altered, "m3"])
        self.assertEqual(said[0]["scope"], "state")

    def test_an_equal_copy_is_the_message(self):
        said = answers(lambda m: [copy.deepcopy(m[1])], context(A, B))
        self.assertEqual(said[0]["keep"], ["m2"])

    def test_state_stays_and_grows(self):
        seen = []

        def f(messages):
            seen.append([m["content"] for m in messages])
            return messages[-1:] if len(messages) > 1 else messages

        said = answers(f, context(A, B), context(C), context())
        self.assertEqual([s.get("keep") for s in said], [["m2"], ["m3"], None])
        self.assertEqual(seen, [["a", "b"], ["b", "c"], ["c"]])

    def test_scope_request_leaves_the_state(self):
        @strategy(scope="request")
        def f(messages):
            return messages[-1:]

        said = play(f, initialize(), context(A, B), context(C))[1:]
        self.assertEqual([s["keep"] for s in said], [["m2"], ["m3"]])
        self.assertEqual(said[0]["scope"], "request")

    def test_new_text_gets_its_id(self):
        mine = user("sum")

        def f(messages):
            ids.append([m["id"] for m in messages])
            return [mine, *messages[-1:]]

        ids = []
        said = answers(f, context(A, B), context(C, new_ids=["t1"]), context())
        self.assertEqual(ids, [["m1", "m2"], ["t1", "m2", "m3"], ["t1", "m3"]])
        # The same object is the same text, and showing it again changes nothing.
        self.assertEqual(said[1]["keep"], ["t1", "m3"])
        self.assertEqual(said[2], {"unchanged": True})

    def test_context_is_given_by_signature(self):
        def f(messages, ctx, keep: int = 1):
            self.assertEqual((ctx.model.window, ctx.scale, ctx.reason), (1000, 0.5, "step"))
            self.assertEqual(ctx.session.system, "You are an agent.")
            self.assertEqual(ctx.usage.input_tokens, 7)
            return messages[-keep:]

        def g(messages, keep: int = 1):
            return messages[-keep:]

        call = context(A, B, reason="step", usage={"input_tokens": 7})
        self.assertEqual(answers(f, call)[0]["keep"], ["m2"])
        self.assertEqual(answers(g, call)[0]["keep"], ["m2"])

    def test_prices_and_scaled_constants(self):
        seen = []

        def f(messages, ctx):
            seen.append((ctx.model.prices, ctx.model.cache, ctx.tokens(30_000)))

        prices = {
            "input": 3, "cache_read": 0.3, "cache_write_5m": 3.75, "cache_write_1h": 6, "output": 15
        }
        cache = {"lifetime_5m_ms": 300_000, "lifetime_1h_ms": 3_600_000, "min_tokens": 1024}
        model = {"id": "m", "provider": "p", "window": 1000, "max_output": 100}
        for more in ({}, {"prices": None}, {"prices": prices, "cache": cache, "newer": 1}):
            play(strategy(f), initialize(model={**model, **more}), context(A))
        self.assertEqual(seen[:2], [(None, None, 15_000)] * 2)
        self.assertEqual((seen[2][0].cache_write_5m, seen[2][1].min_tokens), (3.75, 1024))

    def test_a_setting_with_the_name_of_a_method_is_refused(self):
        with self.assertRaisesRegex(TypeError, "the setting `idle` has the name of a method"):

            class Mine(Strategy):
                idle: int = 5

    def test_settings(self):
        @strategy
        def f(messages, ctx, keep: int = 1, share: float = 0.5, how: str = "x", on: bool = True):
            return [user(repr((keep, share, how, on)))]

        def with_(**settings):
            return play(f, initialize(settings), context(A))

        given = with_(keep=2, share=1, how=5, on=False)[1]["keep"][0]["message"]["content"]
        self.assertEqual(given, "(2, 1.0, '5', False)")
        self.assertEqual(with_(kep=2)[0]["code"], -32602)
        self.assertIn("no setting `kep`", with_(kep=2)[0]["message"])
        self.assertIn("`keep` (1)", with_(kep=2)[0]["message"])
        self.assertIn("expected a whole number", with_(keep="two")[0]["message"])
        self.assertIn("expected true or false", with_(on=1)[0]["message"])

    def test_a_setting_needs_a_default(self):
        with self.assertRaisesRegex(TypeError, "each with a default"):

            @strategy
            def f(messages, ctx, keep):
                return messages

    def test_async_function_is_refused(self):
        with self.assertRaisesRegex(TypeError, "f: the function is async; use def"):

            @strategy
            async def f(messages):
                return messages

        with self.assertRaisesRegex(TypeError, "Mine.idle: the function is async; use def"):

            class Mine(Strategy):
                async def idle(self, ctx):
                    return None

    def test_an_error_is_told_with_its_place(self):
        def f(messages):
            raise ValueError("no such luck")

        with contextlib.redirect_stderr(io.StringIO()) as log:
            (said,) = answers(f, context(A))
        self.assertEqual(said["code"], -32603)
        self.assertRegex(said["message"], r"ValueError: no such luck \(test_kit.py:\d+ in f\)")
        self.assertIn("Traceback", log.getvalue())

    def test_mistakes_are_explained(self):
        def said(f):
            with contextlib.redirect_stderr(io.StringIO()):
                return answers(f, context(A))[0]["message"]

        def changes(messages):
            messages[0]["content"] = "x"
            return messages

        self.assertIn("read-only", said(changes))
        self.assertIn("'m9' does not stand", said(lambda m: [{**m[0], "id": "m9"}]))
        self.assertIn("'m1' stands twice", said(lambda m: [*m, *m]))
        self.assertIn("expected a list of messages", said(lambda m: {"messages": m}))
        self.assertIn("holds int 5", said(lambda m: [5]))

    def test_no_message_is_looked_at_when_nothing_changes(self):
        class Counts(dict):
            looked = 0

            def __eq__(self, other):
                Counts.looked += 1
                return dict.__eq__(self, other)

        from ctxbench.state import State

        state = State()
        state.messages = [Counts(id=str(i)) for i in range(100)]
        self.assertTrue(state.is_same(list(state.messages)))
        self.assertEqual(Counts.looked, 0)


class Dialects(unittest.TestCase):
    def test_an_item_keeps_its_own_id(self):
        item = {"type": "reasoning", "id": "rs_1", "summary": []}

        @strategy(dialect="openai-responses")
        def f(messages):
            return [{**messages[0], "summary": ["x"]}]

        (_, said) = play(f, initialize(), context(("m1", item)))
        self.assertEqual(said["keep"], [{"id": "m1", "message": {**item, "summary": ["x"]}}])

    def test_a_dialect_that_is_not_offered(self):
        @strategy(dialect="latin")
        def f(messages):
            return messages

        self.assertIn("speaks 'latin'", play(f, initialize())[0]["message"])


class Classes(unittest.TestCase):
    def test_moments_are_the_overridden_methods(self):
        class S(Strategy):
            name = "s"

            def context(self, ctx):
                return None

            def rewind(self, ctx, to):
                pass

            def idle(self, ctx):
                pass

        self.assertEqual(play(S, initialize())[0]["moments"], ["rewind", "idle"])

    def test_settings_are_annotated_attributes(self):
        class S(Strategy):
            keep: int = 3

            def start(self, session):
                self.first = self.keep

            def context(self, ctx):
                return [user(str(self.first))]

        said = play(S, initialize({"keep": 4}), context(A))
        self.assertEqual(said[1]["keep"], [{"message": user("4")}])
        self.assertIn("no setting `name`", play(S, initialize({"name": "x"}))[0]["message"])

    def test_everything_an_answer_can_hold(self):
        class S(Strategy):
            def context(self, ctx):
                return Keep(
                    ctx.messages[1:],
                    scope="request",
                    compaction=Compaction("drop", "first", ["m1"]),
                    breakpoints=[Breakpoint("system"), Breakpoint("m2", "1h")],
                    params={"effort": "low"},
                )

        self.assertEqual(
            answers(S, context(A, B))[0],
            {
                "keep": ["m2"],
                "scope": "request",
                "compaction": {"kind": "drop", "mechanism": "first", "ids": ["m1"]},
                "breakpoints": [{"id": "system"}, {"id": "m2", "ttl": "1h"}],
                "params": {"effort": "low"},
            },
        )

    def test_reasons_have_methods(self):
        class S(Strategy):
            def context(self, ctx):
                return [user("context " + ctx.reason)]

            def manual(self, ctx):
                return [user(f"manual {ctx.instructions}")]

            def idle(self, ctx):
                return [user(f"idle {ctx.idle_ms}")]

        calls = [
            context(A, reason="resume"),
            context(reason="overflow", attempt=1, new_ids=["t1"]),
            context(reason="manual", instructions="x", new_ids=["t2"]),
            context(reason="idle", idle_ms=5, new_ids=["t3"]),
        ]
        said = [s["keep"][0]["message"]["content"] for s in answers(S, *calls)]
        self.assertEqual(said, ["context resume", "context overflow", "manual x", "idle 5"])

    def test_event_cannot_change_the_messages(self):
        class S(Strategy):
            def turn_end(self, ctx):
                return ctx.messages[-1:]

        told = ("turn_end", {"usage": None, "stop_reason": "end_turn"})
        self.assertIn("`after_turn`", play(S, initialize(), told)[1]["message"])

    def test_rewind_cuts_the_state(self):
        class S(Strategy):
            def context(self, ctx):
                return [user("sum"), *ctx.messages] if len(ctx.messages) == 2 else None

            def rewind(self, ctx, to):
                ids.append([m.get("id") for m in ctx.messages])

        ids = []
        play(
            S,
            initialize(),
            context(A, B),
            context(C, new_ids=["t1"]),
            ("rewind", {"to": "m2"}),
            ("rewind", {"to": None}),
        )
        # The summary entered after m2, so it is removed with later messages.
        self.assertEqual(ids, [["m1", "m2"], []])

    def test_rewind_to_what_was_not_told_yet(self):
        class S(Strategy):
            def context(self, ctx):
                ids.append([m["id"] for m in ctx.messages])

            def rewind(self, ctx, to):
                pass

        ids = []
        play(S, initialize(), context(A), ("rewind", {"to": "m2"}), context(B, C))
        self.assertEqual(ids, [["m1"], ["m1", "m2", "m3"]])

    def test_admit_error_and_ends(self):
        from ctxbench import Again, Fail

        class S(Strategy):
            def admit(self, ctx, message):
                return {**message, "content": "short"} if len(message["content"]) > 5 else None

            def error(self, ctx, error):
                return {429: Again(), 500: Fail("down")}.get(error.status)

        def error(status):
            return "error", {"class": "server", "status": status, "message": "", "attempt": 1}

        tool = {"role": "tool", "tool_call_id": "c", "content": "long enough"}
        short = {**tool, "content": "short"}
        said = answers(
            S,
            ("admit", {"id": "m1", "message": tool}),
            ("admit", {"id": "m2", "message": short}),
            error(429),
            error(500),
            error(400),
            ("shutdown", {}),
            context(A),
        )
        self.assertEqual(
            said,
            [
                {"message": short},
                {},
                {"again": True},
                {"fail": "down"},
                {},
                {},
            ],
        )

    def test_admit_knows_the_call(self):
        class S(Strategy):
            def admit(self, ctx, message):
                calls.append(ctx.call and (ctx.call.name, ctx.call.arguments))

        calls = []
        tool = {"role": "tool", "tool_call_id": "c", "content": "ok"}
        call = {"name": "Bash", "arguments": {"command": "git status"}, "newer": 1}
        answers(
            S,
            ("admit", {"id": "m1", "message": tool, "call": call}),
            ("admit", {"id": "m2", "message": tool}),
            ("admit", {"id": "m3", "message": tool, "call": {"name": "patch", "arguments": {"input": "+"}}}),
        )
        bash = "Bash", {"command": "git status"}
        self.assertEqual(calls, [bash, None, ("patch", {"input": "+"})])

    def test_an_unknown_method(self):
        self.assertEqual(answers(Strategy, ("dance", {}))[0]["code"], -32601)


REPLY = {"content": [{"type": "text", "text": "sum"}], "usage": {}, "stop_reason": "end_turn"}


class Failing(unittest.TestCase):
    def test_a_model_that_fails_ends_the_turn_and_another_error_the_row(self):
        @strategy
        def asks(messages, ctx):
            try:
                ctx.complete([{"role": "user", "content": "Summarise."}])
            except ModelError as e:
                raise RuntimeError("no summary") from e

        @strategy
        def breaks(messages):
            raise RuntimeError("a fault of its own")

        failed = {"code": -32000, "message": "busy", "data": {"class": "server", "status": 529}}
        said = play(asks, initialize(), context(("m0", user("hi"))), failed)
        self.assertEqual(said[-1], {"fail": "RuntimeError: no summary"})
        with contextlib.redirect_stderr(io.StringIO()):
            said = play(breaks, initialize(), context(("m0", user("hi"))))
        self.assertEqual(said[-1]["code"], -32603)


class Calls(unittest.TestCase):
    def test_a_text_is_a_message_of_the_user(self):
        for dialect, asked in [
            ("openai-chat", user("?")),
            ("openai-responses", {"type": "message", **user("?")}),
        ]:

            @strategy(dialect=dialect)
            def f(messages, ctx):
                return [{**asked, "content": ctx.complete("?").text}]

            said = play(f, initialize(), context(A), REPLY)
            self.assertEqual(said[1], ("complete", {"messages": [{"message": asked}]}))

    def test_complete_and_count(self):
        def f(messages, ctx):
            text = ctx.complete([messages[0], user("?")], system=True, tools=True).text
            tokens = ctx.count_tokens(messages[:1]) + ctx.count_tokens()
            ctx.log("done")
            return [user(f"{text} {tokens}")]

        said = answers(f, context(A, B), REPLY, {"tokens": 3}, {"tokens": 4})
        question = {"messages": ["m1", {"message": user("?")}], "system": True, "tools": True}
        self.assertEqual(
            said,
            [
                ("complete", question),
                ("count_tokens", {"messages": ["m1"]}),
                ("count_tokens", {}),
                ("log", {"message": "done"}),
                {"keep": [{"message": user("sum 7")}], "scope": "state"},
            ],
        )

    def test_in_the_background(self):
        def f(messages, ctx):
            task = ctx.complete(messages, model="summary", max_tokens=9, background=True)
            assert task.result(wait=False) is None
            return [user(task.result().text)]

        said = answers(f, context(A), {"task": "k1"}, {"pending": True}, REPLY)
        self.assertEqual(
            said[0][1],
            {
                "messages": ["m1"],
                "model": "summary",
                "max_tokens": 9,
                "background": True,
            },
        )
        self.assertEqual(
            said[1:3],
            [
                ("collect", {"task": "k1", "wait": False}),
                ("collect", {"task": "k1", "wait": True}),
            ],
        )

    def test_a_failure_of_the_model(self):
        def f(messages, ctx):
            try:
                ctx.complete(messages)
            except ModelError as e:
                return [user(f"{e} {e.class_} {e.status}")]

        data = {"class": "server", "status": 529}
        said = answers(f, context(A), {"code": -32000, "message": "overloaded", "data": data})
        self.assertEqual(said[1]["keep"], [{"message": user("overloaded server 529")}])


if __name__ == "__main__":
    unittest.main()
