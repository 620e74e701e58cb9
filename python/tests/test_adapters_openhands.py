"""OpenHands' condenser through the adapter, against what its documentation says."""

import unittest
from importlib.util import find_spec

if find_spec("openhands") is None:
    print("openhands-sdk is not installed: its adapter is not tested")
    raise unittest.SkipTest("openhands-sdk is not installed")

from adapter_bench import Bench, assistant, overflow, use, user
from ctxbench.adapters.openhands import OpenHands


class OpenHandsTest(unittest.TestCase):
    def bench(self, events: int, **settings: int) -> Bench:
        """As many messages of one event each; the system prompt is an event more."""
        bench = Bench(OpenHands, window=100_000, **{"max_size": 10, "keep_first": 2, **settings})
        for n in range(events):
            bench.add(user(f"u{n}") if n % 2 == 0 else assistant(f"a{n}"))
        return bench

    def test_nothing_happens_up_to_max_size(self) -> None:
        bench = self.bench(9)
        bench.ask("turn")
        self.assertEqual(bench.answer, {"unchanged": True})

    def test_the_first_events_and_half_of_max_size_stay_around_a_summary(self) -> None:
        # 10 / 2 events: two first, two last and the summary.
        bench = self.bench(11)
        bench.replies = ["what was"]
        self.assertEqual(bench.ask("turn"), ["u0", "what was", "a9", "u10"])

    def test_the_summary_is_part_of_the_next(self) -> None:
        bench = self.bench(11)
        bench.replies = ["what was", "all of it"]
        bench.ask("turn")
        bench.add(*(assistant(f"b{n}") for n in range(7)))
        self.assertEqual(bench.ask(), ["u0", "all of it", "b5", "b6"])
        self.assertIn("what was", bench.asked[1]["messages"][0]["content"])

    def test_a_call_stays_with_its_result(self) -> None:
        # One event each: a tail of two would begin with the result of a removed call.
        bench = self.bench(5)
        bench.add(*use("a", "one"), *use("b", "two"), assistant("so"))
        bench.replies = ["what was"]
        self.assertEqual(bench.ask(), ["u0", "what was", "so"])

    def test_calls_of_one_reply_are_one_message(self) -> None:
        bench = self.bench(1)
        (first, one), (second, two) = use("a", "one"), use("b", "two")
        calls = first["tool_calls"] + second["tool_calls"]
        bench.add({**first, "tool_calls": calls}, one, two)
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})

    def test_tokens_are_a_reason_too(self) -> None:
        bench = self.bench(0, max_size=80, max_tokens=500)
        bench.add(*(user(c * 100) for c in "abcdef"))
        bench.replies = ["what was"]
        shown = bench.ask("turn")
        self.assertEqual([t[0] for t in shown], ["a", "w", "f"])

    def test_a_refused_prompt_is_condensed(self) -> None:
        # Half of the seven events: three, less two first and the summary, so that none is left.
        bench = self.bench(6, max_size=80)
        bench.replies = ["what was"]
        self.assertEqual(bench.ask("overflow", attempt=1), ["u0", "what was"])

    def test_without_a_summary_the_turn_ends(self) -> None:
        bench = self.bench(6, max_size=80)
        bench.replies = [overflow()] * 6
        bench.ask("overflow", attempt=1)
        self.assertEqual(bench.answer, {"unchanged": True})
        self.assertIn("prompt is too long", bench.logged[0])


if __name__ == "__main__":
    unittest.main()
