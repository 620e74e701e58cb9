"""Agent Framework's strategies through the adapter, against what its documentation says."""

import unittest

try:
    import agent_framework  # noqa: F401
except ImportError:
    print("agent-framework-core is not installed: its adapter is not tested")
    raise unittest.SkipTest("agent-framework-core is not installed") from None

import inspect

from adapter_bench import Bench, assistant, overflow, use, user
from agent_framework import ContextWindowCompactionStrategy, SummarizationStrategy
from ctxbench.adapters.agent_framework import (
    KINDS,
    ContextWindow,
    SelectiveToolCall,
    SlidingWindow,
    Summarization,
    ToolResult,
    Truncation,
)


class Adapter(unittest.TestCase):
    def test_defaults_are_those_of_the_library(self) -> None:
        for kind, library in (ContextWindow, ContextWindowCompactionStrategy), (
            Summarization,
            SummarizationStrategy,
        ):
            parameters = inspect.signature(library).parameters
            for name, default in kind.defaults().items():
                self.assertIn(name, parameters)
                # None: taken from the session; the client is ours.
                if default is not None and name != "client":
                    self.assertEqual(default, parameters[name].default, name)

    def test_a_short_conversation_stays_as_it_is(self) -> None:
        for name, kind in KINDS.items():
            bench = Bench(kind, window=100_000)
            bench.add(user("task"), *use("a", "result"))
            bench.ask("turn")
            self.assertEqual(bench.answer, {"unchanged": True}, name)

    def test_a_refused_prompt_ends_the_turn_and_new_texts_keep_their_names(self) -> None:
        bench = Bench(ToolResult)
        bench.add(user("task"), *use("a", "one"), *use("b", "two"))
        bench.ask()
        shown = bench.ask("overflow", attempt=1)
        self.assertEqual(bench.answer, {"unchanged": True})
        bench.add(assistant("done"), user("next"))
        self.assertEqual(bench.ask("turn"), [*shown, "done", "next"])


class Strategies(unittest.TestCase):
    def test_the_last_groups_stay(self) -> None:
        # A group: a call with its result, or any other message.
        bench = Bench(SlidingWindow, keep_last_groups=2)
        bench.add(user("task"), *use("a", "one"), *use("b", "two"), user("next"))
        self.assertEqual(bench.ask(), ["", "two", "next"])

    def test_older_calls_are_dropped(self) -> None:
        bench = Bench(SelectiveToolCall)
        bench.add(user("task"), *use("a", "one"), assistant("so"), *use("b", "two"))
        self.assertEqual(bench.ask(), ["task", "so", "", "two"])

    def test_older_results_become_a_line(self) -> None:
        bench = Bench(ToolResult)
        bench.add(user("task"), *use("a", "one"), *use("b", "two"))
        self.assertEqual(bench.ask(), ["task", "[Tool results: read: one]", "", "two"])

    def test_the_oldest_groups_go_until_the_target_is_reached(self) -> None:
        # A quarter of the characters of a message's JSON is its size: 1000 and a bit each.
        bench = Bench(Truncation, max_n=4_000, compact_to=2_100)
        bench.add(*(user(c * 4_000) for c in "abcd"))
        self.assertEqual([t[0] for t in bench.ask()], ["c", "d"])

    def test_thinking_counts(self) -> None:
        bench = Bench(Truncation, max_n=1_000, compact_to=500)
        bench.add(user("task"), {**assistant("so"), "thinking": "t" * 4_000}, user("next"))
        self.assertEqual(bench.ask(), ["next"])

    def test_results_are_shortened_above_half_of_the_budget(self) -> None:
        # The budget is 12,000: 6,000 for results, 9,600 for all.
        bench = Bench(
            ContextWindow,
            max_context_window_tokens=13_000,
            max_output_tokens=1_000,
            keep_last_tool_call_groups=1,
        )
        bench.add(user("task"), *use("a", "x" * 16_000), *use("b", "y" * 10_000))
        task, line, _, newest = bench.ask()
        self.assertEqual((task, newest), ("task", "y" * 10_000))
        self.assertTrue(line.startswith("[Tool results: read: xxx"))
        self.assertEqual(len(line), 4_096)


class SummarizationTest(unittest.TestCase):
    def test_it_starts_above_target_and_threshold(self) -> None:
        bench = Bench(Summarization)
        bench.add(*(user(str(n)) for n in range(6)))
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})
        bench.add(user("6"))
        bench.replies = ["what was"]
        self.assertEqual(bench.ask(), ["what was", "3", "4", "5", "6"])

    def test_the_summary_is_folded_into_the_next(self) -> None:
        bench = Bench(Summarization)
        bench.replies = ["first", "second"]
        bench.add(*(user(str(n)) for n in range(7)))
        bench.ask()
        bench.add(user("7"), user("8"))
        self.assertEqual(bench.ask(), ["second", "5", "6", "7", "8"])
        self.assertIn("first", bench.asked[1]["messages"][0]["content"])

    def test_without_an_answer_nothing_changes(self) -> None:
        bench = Bench(Summarization)
        bench.add(*(user(str(n)) for n in range(7)))
        for said in "", overflow():
            bench.replies = [said]
            bench.ask()
            self.assertEqual(bench.answer, {"unchanged": True})


if __name__ == "__main__":
    unittest.main()
