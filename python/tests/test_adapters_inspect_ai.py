"""Inspect's strategies through the adapter, against what its documentation says."""

import unittest

try:
    import inspect_ai  # noqa: F401
except ImportError:
    print("inspect_ai is not installed: its adapter is not tested")
    raise unittest.SkipTest("inspect_ai is not installed") from None

import inspect

from adapter_bench import Bench, anthropic, assistant, overflow, text, use, user
from ctxbench.adapters.inspect_ai import Edit, Summary, Trim
from inspect_ai.model import CompactionEdit, CompactionSummary, CompactionTrim

CLEARED = "(Tool result removed)"


def results(bench: Bench) -> list[str]:
    return [text(m) for _, m in bench.state if m["content"][0]["type"] == "tool_result"]


class Adapter(unittest.TestCase):
    def test_settings_are_the_parameters_of_the_library(self) -> None:
        for kind, library in (Edit, CompactionEdit), (Trim, CompactionTrim), (
            Summary,
            CompactionSummary,
        ):
            parameters = inspect.signature(library).parameters
            defaults = {name: p.default for name, p in parameters.items()}
            ours = kind.defaults()
            self.assertEqual(set(ours), set(defaults), library)
            ours.pop("exclude_tools", None), defaults.pop("exclude_tools", None)
            self.assertEqual(ours, defaults, library)

    def test_nothing_happens_up_to_the_threshold(self) -> None:
        # 90 % of 100: the system prompt has 8 tokens, which leaves 82.
        for kind in Edit, Trim, Summary:
            bench = Bench(kind, window=100)
            bench.add(user("x" * 82))
            bench.ask("turn")
            self.assertEqual(bench.answer, {"unchanged": True}, kind)

    def test_a_result_above_the_threshold_is_an_error(self) -> None:
        bench = Bench(Trim, window=100)
        bench.add(user("x" * 83))
        with self.assertRaisesRegex(RuntimeError, "91 tokens still exceeds threshold of 90"):
            bench.ask("turn")

    def test_the_reply_says_what_the_last_request_had(self) -> None:
        # Assumed: 170 of the request and 11 of later messages, above 180.
        bench = Bench(Edit, window=200)
        bench.add(user("task"), *use("a", "x" * 9), *use("b", "b"), *use("c", "c"), *use("d", "d"))
        bench.ask("turn")
        bench.reply(input_tokens=170)
        bench.add(*use("e", "e" * 11))
        bench.ask()
        self.assertEqual(
            bench.answer["trigger"], {"check": "threshold", "believed": 181, "limit": 180}
        )

    def test_thresholds_are_shares_or_tokens(self) -> None:
        for threshold in (0.5, 50):
            bench = Bench(Trim, window=100, threshold=threshold, preserve=0.5)
            bench.add(user("task"), *(assistant(c * 10) for c in "abcdef"), user("x"))
            bench.ask("turn")
            self.assertEqual(bench.answer["trigger"]["limit"], 50)


class EditTest(unittest.TestCase):
    def test_all_but_the_newest_three_results_are_cleared(self) -> None:
        bench = Bench(Edit, window=200)
        bench.add(user("task"))
        for n, letter in enumerate("abcde"):
            bench.add(*use(f"c{n}", letter * 40))
        bench.ask("turn")
        kept = [letter * 40 for letter in "cde"]
        self.assertEqual(results(bench), [CLEARED, CLEARED, *kept])
        altered = [e["id"] for e in bench.answer["keep"] if isinstance(e, dict)]
        self.assertEqual(altered, ["m3", "m5"])

    def test_thinking_stays_with_the_last_reply(self) -> None:
        bench = Bench(Edit, window=200)
        bench.add(user("task"))
        for n in range(3):
            called, result = use(f"c{n}", "x" * 20)
            bench.add({**called, "thinking": "t" * 50}, result)
        bench.ask("turn")
        replies = [m for _, m in bench.state if m["role"] == "assistant"]
        thoughts = ["thinking" in m["content"][0] for m in replies]
        self.assertEqual(thoughts, [False, False, True])

    def test_results_that_came_together_are_told_apart(self) -> None:
        bench = Bench(Edit, window=100, keep_tool_uses=1)
        calls, results = zip(*(use(f"c{n}", str(n) * 40) for n in range(2)))
        bench.add(user("task"), {**calls[0], "tool_calls": [c["tool_calls"][0] for c in calls]})
        bench.add(dict(role="user", content=None))
        together = [b for r in results for b in anthropic(r)["content"]]
        bench.state[-1] = bench.state[-1][0], {"role": "user", "content": together}
        self.assertEqual(bench.ask()[2], CLEARED + "1" * 40)

    def test_what_was_cleared_stays_cleared_and_is_not_told_again(self) -> None:
        bench = Bench(Edit, window=200)
        bench.add(user("task"))
        for n in range(5):
            bench.add(*use(f"c{n}", "x" * 40))
        bench.ask("turn")
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})

    def test_calls_go_with_their_results_without_tool_inputs(self) -> None:
        bench = Bench(Edit, window=200, keep_tool_inputs=False, keep_tool_uses=1)
        bench.add(user("task"), *use("a", "x" * 150), *use("b", "y" * 30))
        shown = bench.ask("turn")
        self.assertEqual(results(bench), ["y" * 30])
        self.assertIn("read", shown[1])
        self.assertEqual([b["type"] for b in bench.state[1][1]["content"]], ["text"])


class TrimTest(unittest.TestCase):
    def test_a_share_of_the_messages_stays_and_the_input(self) -> None:
        bench = Bench(Trim, window=100, preserve=0.5)
        bench.add(user("task"), *(assistant(c * 10) for c in "abcdefghi"), user("x"))
        shown = bench.ask("turn")
        self.assertEqual(shown, ["task", *(c * 10 for c in "fghi"), "x"])

    def test_a_result_without_its_call_goes_too(self) -> None:
        bench = Bench(Trim, window=100, preserve=0.5)
        bench.add(user("task"), *use("a", "x" * 30), *use("b", "y" * 30), *use("c", "z" * 30))
        bench.ask("turn")
        self.assertEqual(results(bench), ["z" * 30])


class SummaryTest(unittest.TestCase):
    def bench(self) -> Bench:
        bench = Bench(Summary, window=1000, threshold=0.5)
        bench.add(user("task"), assistant("x" * 600), user("go on"))
        return bench

    def test_the_input_and_a_summary_stay(self) -> None:
        bench = self.bench()
        bench.replies = ["<analysis>why</analysis>\n<summary>what</summary>"]
        first, summary = bench.ask("turn")
        self.assertEqual(first, "task")
        self.assertIn("<summary>what</summary>", summary)
        self.assertNotIn("why", summary)

    def test_the_model_sees_the_messages_and_the_system_prompt(self) -> None:
        bench = self.bench()
        bench.replies = ["what"]
        bench.ask("turn")
        [asked] = bench.asked
        shown = [text(m) for m in asked["messages"]]
        self.assertEqual(shown[:3], ["task", "x" * 600, "go on"])
        self.assertIs(asked["system"], True)

    def test_the_next_summary_starts_from_the_last(self) -> None:
        bench = self.bench()
        bench.replies = ["first", "second"]
        _, first = bench.ask("turn")
        bench.add(assistant("y" * 600), user("more"))
        bench.ask("turn")
        shown = [text(m) for m in bench.asked[1]["messages"]]
        self.assertEqual(shown[:4], ["task", first, "y" * 600, "more"])

    def test_another_model_may_write_it(self) -> None:
        bench = Bench(Summary, window=1000, threshold=0.5, model="summary")
        bench.add(user("task"), assistant("x" * 600), user("go on"))
        bench.replies = ["what"]
        bench.ask("turn")
        self.assertEqual(bench.asked[0]["model"], "summary")


class Overflow(unittest.TestCase):
    def test_the_first_refusal_compacts_below_the_threshold(self) -> None:
        bench = Bench(Summary)
        bench.add(user("task"), assistant("x"), user("go on"))
        bench.ask("turn")
        bench.replies = ["what"]
        self.assertEqual(len(bench.ask("overflow", attempt=1)), 2)
        self.assertNotIn("trigger", bench.answer)

    def test_the_second_ends_the_turn(self) -> None:
        bench = Bench(Summary)
        bench.add(user("task"), assistant("x"), user("go on"))
        bench.replies = ["what"]
        bench.ask("overflow", attempt=1)
        bench.ask("overflow", attempt=2)
        self.assertEqual(bench.answer, {"unchanged": True})
        bench.add(assistant("done"), user("next"))
        bench.ask("turn")
        self.assertEqual(bench.answer, {"unchanged": True})

    def test_a_summary_that_overflows_ends_the_turn_and_says_why(self) -> None:
        bench = Bench(Summary)
        bench.add(user("task"), assistant("x"), user("go on"))
        bench.replies = [overflow()]
        bench.ask("overflow", attempt=1)
        self.assertEqual(bench.answer, {"unchanged": True})
        self.assertIn("summary generation exceeded", bench.logged[0])


if __name__ == "__main__":
    unittest.main()
