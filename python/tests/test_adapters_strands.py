"""Strands' conversation managers through the adapter, against what their documentation says."""

import unittest
from importlib.util import find_spec

if find_spec("strands") is None:
    print("strands-agents is not installed: its adapter is not tested")
    raise unittest.SkipTest("strands-agents is not installed")

import inspect

from adapter_bench import Bench, assistant, overflow, talk, use, user
from ctxbench.adapters.strands import SlidingWindow, Summarizing
from strands.agent import conversation_manager as library


class Defaults(unittest.TestCase):
    def test_defaults_are_those_of_the_library(self) -> None:
        for kind, theirs in (
            (Summarizing, library.SummarizingConversationManager),
            (SlidingWindow, library.SlidingWindowConversationManager),
        ):
            parameters = inspect.signature(theirs).parameters
            for name, default in kind.defaults().items():
                if name != "compression_threshold":  # A field of `proactive_compression` there.
                    self.assertEqual(default, parameters[name].default, name)


class SummarizingTest(unittest.TestCase):
    def test_nothing_happens_before_a_refusal(self) -> None:
        bench = Bench(Summarizing)
        talk(bench, 200)
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})

    def test_a_share_of_the_messages_becomes_a_summary(self) -> None:
        # 30 % of 20.
        bench = Bench(Summarizing)
        talk(bench, 20)
        bench.replies = ["what was"]
        shown = bench.ask("overflow", attempt=1)
        self.assertEqual(shown[:2], ["what was", "u6"])
        self.assertEqual((len(shown), shown[-1]), (15, "a19"))
        self.assertIn("u0", str(bench.asked[0]["messages"]))
        self.assertNotIn("u6", str(bench.asked[0]["messages"]))

    def test_the_newest_ten_stay(self) -> None:
        # 30 % of 12 would be 3.
        bench = Bench(Summarizing)
        talk(bench, 12)
        bench.replies = ["what was"]
        self.assertEqual(bench.ask("overflow", attempt=1)[:2], ["what was", "u2"])

    def test_ten_messages_cannot_be_summarised(self) -> None:
        bench = Bench(Summarizing)
        talk(bench, 10)
        bench.ask("overflow", attempt=1)
        self.assertEqual(bench.answer, {"unchanged": True})
        self.assertIn("insufficient messages", bench.logged[0])

    def test_a_failed_summary_fails_the_turn(self) -> None:
        bench = Bench(Summarizing)
        talk(bench, 20)
        bench.replies = [overflow()] * 6
        bench.ask("overflow", attempt=1)
        self.assertIn("prompt is too long", bench.answer["fail"])

    def test_a_threshold_acts_before_the_request(self) -> None:
        bench = Bench(Summarizing, window=60, compression_threshold=0.7)
        # 42 tokens of 60: ten of the request, and 32 characters in 16 messages.
        letters = enumerate("abcdefghijklmno")
        bench.add(*(user(c * 2) if n % 2 == 0 else assistant(c * 2) for n, c in letters))
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})
        bench.add(assistant("pp"))
        bench.replies = ["what was"]
        self.assertEqual(bench.ask()[:2], ["what was", "ee"])


class SlidingWindowTest(unittest.TestCase):
    def test_the_end_of_a_turn_leaves_a_window(self) -> None:
        bench = Bench(SlidingWindow, window_size=4)
        talk(bench, 6)
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})
        self.assertEqual(bench.ask("after_turn"), ["u2", "a3", "u4", "a5"])

    def test_the_request_of_the_user_goes_where_only_calls_follow(self) -> None:
        bench = Bench(SlidingWindow, window_size=4)
        bench.add(user("task"), *use("a", "one"), *use("b", "two"), *use("c", "three"))
        self.assertEqual(bench.ask("after_turn"), ["", "two", "", "three"])

    def test_a_refusal_shortens_the_oldest_result(self) -> None:
        bench = Bench(SlidingWindow)
        bench.add(user("task"), *use("a", "b" * 400 + "m" * 400 + "e" * 400), assistant("so"))
        task, _, result, so = bench.ask("overflow", attempt=1)
        self.assertEqual((task, so), ("task", "so"))
        # The first and the last 200 characters.
        self.assertTrue(result.startswith("b" * 200) and result.endswith("e" * 200), result)
        self.assertNotIn("b" * 201, result)
        self.assertNotIn("m", result[200:-200].replace("removed", "").replace("from", ""))

    def test_without_results_the_oldest_two_go(self) -> None:
        bench = Bench(SlidingWindow)
        talk(bench, 6)
        self.assertEqual(bench.ask("overflow", attempt=1), ["u2", "a3", "u4", "a5"])


if __name__ == "__main__":
    unittest.main()
