"""Semantic Kernel's reducers through the adapter, against what their documentation says."""

import unittest
from importlib.util import find_spec

if find_spec("semantic_kernel") is None:
    print("semantic-kernel is not installed: its adapter is not tested")
    raise unittest.SkipTest("semantic-kernel is not installed")

from adapter_bench import Bench, assistant, talk, use, user
from ctxbench.adapters.semantic_kernel import KINDS, Summarization, Truncation


class SemanticKernelTest(unittest.TestCase):
    def test_target_and_threshold_are_numbers_of_messages(self) -> None:
        for name, kind in KINDS.items():
            bench = Bench(kind)
            talk(bench, 15)
            bench.ask()
            self.assertEqual(bench.answer, {"unchanged": True}, name)

    def test_the_newest_ten_stay(self) -> None:
        bench = Bench(Truncation)
        talk(bench, 16)
        self.assertEqual(bench.ask(), [f"{'ua'[n % 2]}{n}" for n in range(6, 16)])

    def test_a_summary_stands_for_the_others(self) -> None:
        bench = Bench(Summarization)
        talk(bench, 16)
        bench.replies = ["what was"]
        self.assertEqual(bench.ask()[:2], ["what was", "u6"])
        *told, ask = [m["content"] for m in bench.asked[0]["messages"]]
        self.assertEqual(told, ["u0", "a1", "u2", "a3", "u4", "a5"])
        self.assertIn("5 sentences", ask)

    def test_a_summary_is_part_of_the_next(self) -> None:
        bench = Bench(Summarization, target_count=2, threshold_count=1)
        talk(bench, 4)
        bench.replies = ["first", "second"]
        self.assertEqual(bench.ask(), ["first", "u2", "a3"])
        bench.add(user("u4"), assistant("a5"))
        self.assertEqual(bench.ask(), ["second", "u4", "a5"])
        self.assertEqual(bench.asked[1]["messages"][0]["content"], "first")

    def test_calls_and_results_are_not_summarised(self) -> None:
        bench = Bench(Summarization, target_count=2, threshold_count=1)
        bench.add(user("task"), *use("a", "one"), assistant("so"), user("next"), assistant("done"))
        bench.replies = ["what was"]
        self.assertEqual(bench.ask(), ["what was", "next", "done"])
        self.assertEqual([m["content"] for m in bench.asked[0]["messages"][:-1]], ["task", "so"])

    def test_of_a_turn_of_calls_only_the_request_of_the_user_goes(self) -> None:
        bench = Bench(Truncation)
        bench.add(user("task"), *(m for n in range(8) for m in use(str(n), f"r{n}")))
        shown = bench.ask()
        self.assertEqual((len(shown), shown[1]), (16, "r0"))


if __name__ == "__main__":
    unittest.main()
