"""LlamaIndex' memories through the adapter, against what their documentation says.

Words such as `one` are one token each for its tokenizer.
"""

import unittest
from importlib.util import find_spec

if find_spec("llama_index") is None:
    print("llama-index-core is not installed: its adapter is not tested")
    raise unittest.SkipTest("llama-index-core is not installed")

from adapter_bench import Bench, assistant, use, user
from ctxbench.adapters.llama_index import KINDS, Buffer, Recent, Summary

TALK = [user("one"), assistant("two"), user("three"), assistant("four")]


class LlamaIndexTest(unittest.TestCase):
    def test_a_short_conversation_stays_as_it_is(self) -> None:
        for name, kind in KINDS.items():
            bench = Bench(kind, window=100_000)
            bench.add(user("task"), *use("a", "result"))
            bench.ask("turn")
            self.assertEqual(bench.answer, {"unchanged": True}, name)

    def test_the_newest_messages_that_fit_are_shown(self) -> None:
        # Three would fit, but begin with a reply.
        bench = Bench(Buffer, token_limit=3)
        bench.add(*TALK)
        self.assertEqual(bench.ask(), ["three", "four"])

    def test_what_was_left_out_is_left_out_of_one_request(self) -> None:
        bench = Bench(Buffer, token_limit=3)
        bench.add(*TALK)
        bench.ask()
        self.assertEqual(bench.answer["scope"], "request")
        self.assertEqual(len(bench.state), 4)

    def test_the_limit_is_three_quarters_of_the_window(self) -> None:
        for window, shown in (6, 4), (5, 2):  # int(6 × 0.75) = 4 tokens, int(5 × 0.75) = 3
            bench = Bench(Buffer, window=window)
            bench.add(*TALK)
            self.assertEqual(len(bench.ask()), shown)

    def test_calls_are_not_counted(self) -> None:
        bench = Bench(Buffer, token_limit=10)
        bench.add(user("task"), *use("a", "result", arguments='{"text":"%s"}' % ("word " * 1000)))
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})

    def test_older_messages_become_a_summary(self) -> None:
        bench = Bench(Summary, token_limit=2)
        bench.add(*TALK)
        bench.replies = ["so"]
        self.assertEqual(bench.ask(), ["so", "three", "four"])
        [told] = bench.asked[0]["messages"]
        self.assertIn("one", told["content"])
        self.assertNotIn("three", told["content"])

    def test_the_default_memory_forgets_above_its_limit(self) -> None:
        bench = Bench(Recent, window=1_000_000, scale=0.001)  # 30 tokens
        for n in range(9):
            bench.add(user(f"{n} " + "word " * 8) if n % 2 == 0 else assistant("ok"))
        shown = bench.ask()
        self.assertTrue(shown[-1].startswith("8 "), shown)
        self.assertFalse(any(t.startswith("0 ") for t in shown), shown)
        self.assertTrue(shown[0][0].isdigit(), shown)  # It begins with the user.


if __name__ == "__main__":
    unittest.main()
