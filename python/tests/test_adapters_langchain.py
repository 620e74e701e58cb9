"""LangChain's and Deep Agents' middleware through the adapters, against what they document."""

import importlib.util
import unittest

for library in ("langchain", "deepagents"):
    if importlib.util.find_spec(library) is None:
        print(f"{library} is not installed: its adapter is not tested")
        raise unittest.SkipTest(f"{library} is not installed")

import inspect

from adapter_bench import Bench, assistant, overflow, use, user
from ctxbench.adapters._langchain import size
from ctxbench.adapters.deepagents import DeepAgents
from ctxbench.adapters.langchain import ContextEditing, Summarization
from ctxbench.wire import MODEL, RemoteError
from langchain.agents.middleware import ClearToolUsesEdit, SummarizationMiddleware


class Sizes(unittest.TestCase):
    def test_as_people_write_them(self) -> None:
        self.assertEqual(size("fraction:0.8", 0.5), ("fraction", 0.8))
        self.assertEqual(size("messages:20", 0.5), ("messages", 20))
        self.assertEqual(size("tokens:4000", 0.5), ("tokens", 2000))
        # An amount of ctxbench is scaled already.
        self.assertEqual(size(4000, 0.5), ("tokens", 4000))
        self.assertEqual(size("0.8", 0.5), ("fraction", 0.8))
        for wrong in ("much", "words:5", "messages:-1"):
            with self.assertRaisesRegex(ValueError, "expected fraction:0.8"):
                size(wrong, 1)


class Summaries(unittest.TestCase):
    def test_defaults_are_those_of_the_library(self) -> None:
        defaults = {
            n: p.default for n, p in inspect.signature(SummarizationMiddleware).parameters.items()
        }
        self.assertIsNone(defaults["trigger"])
        self.assertEqual(defaults["keep"], size(Summarization.keep, 1))
        self.assertEqual(defaults["trim_tokens_to_summarize"], 4000)

    def test_nothing_happens_without_a_trigger(self) -> None:
        bench = Bench(Summarization, window=10)
        bench.add(*[user("x" * 100) for _ in range(30)])
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})

    def test_all_but_the_newest_become_a_summary(self) -> None:
        bench = Bench(Summarization, trigger="messages:5", keep="messages:2")
        bench.add(user("a"), assistant("b"), user("c"), assistant("d"))
        self.assertEqual(bench.ask("turn"), ["a", "b", "c", "d"])
        bench.add(user("e"))
        bench.replies = ["SUM"]
        shown = bench.ask("turn")
        self.assertEqual(shown[1:], ["d", "e"])
        self.assertTrue(shown[0].endswith("SUM"))
        compaction = {"kind": "summarise", "mechanism": "summarization"}
        self.assertEqual(bench.answer["compaction"], {**compaction, "ids": ["m1", "m2", "m3"]})
        # One question in one message, without system prompt and tools.
        (asked,) = bench.asked
        self.assertEqual([m["role"] for m in asked["messages"]], ["user"])
        self.assertEqual(set(asked), {"messages"})
        # The summary stays in the conversation and is summarised later.
        bench.add(assistant("f"), user("g"))
        bench.replies = ["AGAIN"]
        self.assertEqual(bench.ask("turn")[1:], ["f", "g"])
        self.assertIn("SUM", bench.asked[1]["messages"][0]["content"])

    def test_a_request_that_is_sent_again_is_not_summarised_again(self) -> None:
        bench = Bench(Summarization, trigger="messages:2", keep="messages:1")
        bench.add(user("a"), user("b"))
        bench.replies = ["SUM"]
        shown = bench.ask("turn")
        self.assertEqual(bench.ask("step"), shown)
        self.assertEqual(len(bench.asked), 1)

    def test_a_cut_on_a_result_goes_back_to_its_call(self) -> None:
        bench = Bench(Summarization, trigger="messages:4", keep="messages:1")
        bench.add(user("a"), assistant("b"), *use("c1", "result"))
        bench.replies = ["SUM"]
        self.assertEqual(bench.ask()[1:], [None, "result"])

    def test_tokens_are_estimated_and_system_and_tools_not_counted(self) -> None:
        # 392 characters and 4 of the role are 99 tokens, plus 3.
        bench = Bench(Summarization, trigger=103, keep="messages:1")
        bench.add(user("x" * 392))
        bench.ask("turn")
        self.assertEqual(bench.answer, {"unchanged": True})
        bench = Bench(Summarization, trigger=103, keep="messages:1")
        bench.add(user(""), user("x" * 380))
        bench.replies = ["SUM"]
        bench.ask("turn")
        # 1 + 3 and 96 + 3.
        self.assertEqual(
            bench.answer["trigger"], {"check": "trigger", "believed": 103, "limit": 103}
        )

    def test_a_summary_that_fails_fails_the_turn(self) -> None:
        bench = Bench(Summarization, trigger="messages:2", keep="messages:1")
        bench.add(user("a"), user("b"))
        bench.replies = [RemoteError(MODEL, "bad request", {"class": "invalid", "status": 400})]
        bench.ask("turn")
        # The message is LangChain's own error.
        self.assertEqual(bench.answer, {"fail": "ModelInvalidRequestError: bad request"})

    def test_a_summary_that_is_too_large_is_asked_for_once_more(self) -> None:
        bench = Bench(Summarization, trigger="messages:2", keep="messages:1")
        bench.add(user("a" * 2000), user("b"))
        bench.replies = [overflow(), "SUM"]
        self.assertTrue(bench.ask("turn")[0].endswith("SUM"))
        first, second = (a["messages"][0]["content"] for a in bench.asked)
        self.assertLess(second.count("a" * 10), first.count("a" * 10))


class Clearing(unittest.TestCase):
    def test_defaults_are_those_of_the_library(self) -> None:
        parameters = inspect.signature(ClearToolUsesEdit).parameters
        self.assertEqual(parameters["trigger"].default, 100_000)
        for name in ("clear_at_least", "keep", "clear_tool_inputs", "placeholder"):
            self.assertEqual(ContextEditing.defaults()[name], parameters[name].default)

    def test_all_but_the_newest_results_are_cleared_for_the_request(self) -> None:
        bench = Bench(ContextEditing, trigger=10, keep=1)
        bench.add(user("a"), *use("c1", "one " * 50), *use("c2", "two"))
        self.assertEqual(bench.ask(), ["a", None, "[cleared]", None, "two"])
        self.assertEqual(bench.answer["scope"], "request")
        altered = {"role": "tool", "tool_call_id": "c1", "content": "[cleared]"}
        self.assertEqual(
            bench.answer["keep"], ["m1", "m2", {"id": "m3", "message": altered}, "m4", "m5"]
        )

    def test_arguments_can_go_too(self) -> None:
        bench = Bench(ContextEditing, trigger=10, keep=1, clear_tool_inputs=True)
        bench.add(user("a"), *use("c1", "one " * 50), *use("c2", "two"))
        bench.ask()
        call = bench.answer["keep"][1]["message"]["tool_calls"][0]
        self.assertEqual((call["id"], call["function"]["arguments"]), ("c1", "{}"))

    def test_some_tools_are_spared(self) -> None:
        bench = Bench(ContextEditing, trigger=10, keep=1, exclude_tools="read write")
        bench.add(user("a"), *use("c1", "one " * 50), *use("c2", "two"))
        bench.ask()
        self.assertEqual(bench.answer, {"unchanged": True})


class Deep(unittest.TestCase):
    def long(self, **settings: object) -> Bench:
        bench = Bench(DeepAgents, window=1000, **settings)
        bench.add(user("a" * 2000), assistant("b" * 1200), user("c" * 200))
        return bench

    def test_summarises_at_85_percent_and_keeps_10(self) -> None:
        # About 500, 300 and 50 of 1000 tokens.
        bench = self.long()
        bench.replies = ["SUM"]
        shown = bench.ask("turn")
        self.assertEqual(shown[1:], ["c" * 200])
        self.assertIn("SUM", shown[0])
        self.assertIn("/conversation_history/session_", shown[0])
        # For good only when the request was answered.
        self.assertEqual(bench.answer["scope"], "request")
        bench.reply(100)
        bench.add(assistant("d"), user("e"))
        self.assertEqual(bench.ask("turn"), [shown[0], "c" * 200, "d", "e"])
        self.assertEqual(bench.answer["scope"], "state")
        bench.reply(100)
        bench.add(assistant("f"), user("g"))
        self.assertEqual(bench.ask("turn")[1:], ["c" * 200, "d", "e", "f", "g"])

    def test_output_that_is_asked_for_is_kept_free(self) -> None:
        # About 850 tokens of 10000: 95 % less 9000 are 500.
        bench = Bench(DeepAgents, window=10_000, max_tokens=9_000)
        bench.add(user("a" * 2000), assistant("b" * 1200), user("c" * 200))
        with self.assertRaisesRegex(Exception, "above the input budget"):
            bench.ask("turn")
        bench = Bench(DeepAgents, window=10_000, max_tokens=9_000, keep="messages:1")
        bench.add(user("a" * 2000), assistant("b" * 1200), user("c" * 200))
        bench.replies = ["SUM"]
        self.assertIn("SUM", bench.ask("turn")[0])

    def test_a_request_that_fails_takes_its_summary_along(self) -> None:
        bench = self.long()
        bench.replies = ["LOST", "SUM"]
        bench.ask("turn")
        bench.add(user("d"))
        self.assertIn("SUM", bench.ask("turn")[0])

    def test_a_refusal_is_summarised_once(self) -> None:
        bench = Bench(DeepAgents, window=1000)
        bench.add(user("a" * 400), assistant("b" * 400), user("c" * 300))
        self.assertEqual(len(bench.ask("turn")), 3)
        bench.replies = ["SUM"]
        shown = bench.ask("overflow", attempt=1)
        self.assertIn("SUM", shown[0])
        self.assertEqual(shown[1:], ["c" * 300])
        # Before it is sent again, ctxbench asks again.
        self.assertEqual(bench.ask("step"), shown)
        bench.ask("overflow", attempt=2)
        self.assertEqual(bench.answer, {"unchanged": True})
        self.assertIn("still does not fit", bench.logged[0])

    def test_the_name_of_the_file_is_the_same_in_every_run(self) -> None:
        first, second = self.long(), self.long()
        first.replies, second.replies = ["SUM"], ["SUM"]
        self.assertEqual(first.ask("turn"), second.ask("turn"))


if __name__ == "__main__":
    unittest.main()
