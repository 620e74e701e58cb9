"""Places where a library does otherwise than its documentation says: docs/sources/real-libraries.md.

Each case is as small as it can be, and is about the library alone. One that
fails tells that the library has changed, and that its row is to be looked at again.
"""

import asyncio
import unittest
from importlib.util import find_spec
from typing import Any

LIBRARIES = ("inspect_ai", "agent_framework", "langchain", "openhands")
HAVE = {name: find_spec(name) is not None for name in LIBRARIES}
for library, there in HAVE.items():
    if not there:
        print(f"{library} is not installed: its cases are not tried")


@unittest.skipUnless(HAVE["inspect_ai"], "inspect_ai is not installed")
class Inspect(unittest.TestCase):
    def trimmed(self, messages: int, preserve: float) -> int:
        """How many messages of a conversation are left, its input not counted."""
        from inspect_ai.model import ChatMessageUser, CompactionTrim

        given = [ChatMessageUser(content="task", source="input")]
        given += [ChatMessageUser(content=str(n)) for n in range(messages)]
        trim = CompactionTrim(preserve=preserve).compact(None, given, [])  # type: ignore
        return len(asyncio.run(trim)[0]) - 1

    def test_trim_keeps_more_than_its_share(self) -> None:
        # Documented: 80 %, which of these is 4, 8, 16 and 40.
        kept = [self.trimmed(n, 0.8) for n in (5, 10, 20, 50)]
        self.assertEqual(kept, [5, 9, 17, 41])

    def test_trim_takes_nothing_from_five_messages_or_fewer(self) -> None:
        self.assertEqual([self.trimmed(n, 0.8) for n in range(6)], [0, 1, 2, 3, 4, 5])

    def test_so_it_can_fail_where_a_share_would_do(self) -> None:
        from inspect_ai.model import (
            ChatMessageUser,
            CompactionTrim,
            ModelAPI,
            compaction,
            get_model,
            modelapi,
        )

        class Provider(ModelAPI):
            async def generate(self, *_: Any) -> Any:
                raise AssertionError("nothing is asked")

            async def count_tokens(self, input: Any, config: Any = None) -> int:
                return sum(len(m.content) for m in input)

        modelapi(name="counting")(lambda: Provider)

        async def run() -> Any:
            given = [ChatMessageUser(content="task", source="input")]
            given += [ChatMessageUser(content="x" * 10) for _ in range(7)]
            handler = compaction(
                CompactionTrim(threshold=50), given[:1], model=get_model("counting/model")
            )
            return await handler.compact_input(given)

        # 74 tokens; 80 % of the messages, three times, would be 44. It stops at five.
        with self.assertRaisesRegex(RuntimeError, "54 tokens still exceeds threshold of 50"):
            asyncio.run(run())

    def test_the_prompt_asks_for_nine_sections(self) -> None:
        from inspect_ai.model import CompactionSummary

        prompt = CompactionSummary.DEFAULT_SUMMARY_PROMPT
        self.assertIn("\n9. ", prompt)
        self.assertNotIn("task overview", prompt.lower())
        self.assertNotIn("important discoveries", prompt.lower())


@unittest.skipUnless(HAVE["agent_framework"], "agent-framework-core is not installed")
class AgentFramework(unittest.TestCase):
    def turns(self, count: int, instructions: str = "", **options: Any) -> list[list[str]]:
        """What the model is shown in each turn of an agent; summaries are `S1`, `S2`…

        Messages of the user are `u1`, `u2`…, and replies `a1`, `a2`….
        """
        from agent_framework import (
            Agent,
            BaseChatClient,
            ChatResponse,
            CompactionProvider,
            InMemoryHistoryProvider,
            Message,
        )

        shown: list[list[str]] = []
        self.summarised: list[str] = []

        class Client(BaseChatClient):
            async def _inner_get_response(self, *, messages, stream, options, **_):  # type: ignore
                if messages[0].role == "system":
                    told.append(messages[1].text)
                    return ChatResponse(messages=[Message("assistant", [f"S{len(told)}"])])
                shown.append([m.text for m in messages])
                return ChatResponse(messages=[Message("assistant", [f"a{len(shown)}"])])

        told, client = self.summarised, Client()
        history = InMemoryHistoryProvider(skip_excluded=options.pop("skip_excluded", False))
        providers: list[Any] = [history]
        phases = {k: make(client) for k, make in options.items() if k != "compaction_strategy"}
        if phases:
            providers.append(CompactionProvider(**phases, history_source_id=history.source_id))
        in_run = options.get("compaction_strategy")
        agent = Agent(
            client=client,
            instructions=instructions,
            context_providers=providers,
            compaction_strategy=in_run and in_run(client),
        )

        async def run() -> None:
            session = agent.create_session()
            for n in range(1, count + 1):
                await agent.run(f"u{n}", session=session)

        asyncio.run(run())
        return shown

    def summarization(self, client: Any) -> Any:
        from agent_framework import SummarizationStrategy

        return SummarizationStrategy(client=client)

    def test_compacting_what_is_stored_makes_the_next_turn_larger(self) -> None:
        before, after = self.turns(6, after_strategy=self.summarization)[4:]
        self.assertEqual(len(before), 9)
        self.assertEqual(after, ["S1", *before, "a5", "u6"])

    def test_it_takes_a_history_that_skips_what_was_left_out(self) -> None:
        after = self.turns(6, after_strategy=self.summarization, skip_excluded=True)[5]
        self.assertEqual(after, ["S1", "u3", "a3", "u4", "a4", "u5", "a5", "u6"])

    def test_a_strategy_before_the_run_summarises_everything_in_every_turn(self) -> None:
        self.turns(7, before_strategy=self.summarization)
        self.assertEqual(len(self.summarised), 3)
        for told in self.summarised:
            self.assertTrue(told.startswith("1. [user] u1\n2. [assistant] a1\n"))
        self.assertEqual([told.count("\n") + 1 for told in self.summarised], [4, 6, 8])

    def test_so_does_one_in_the_run(self) -> None:
        self.turns(6, compaction_strategy=self.summarization)
        self.assertEqual([told.count("\n") + 1 for told in self.summarised], [3, 5, 7])

    def test_instructions_are_not_counted(self) -> None:
        from agent_framework import ContextWindowCompactionStrategy, included_token_count

        believed = []

        def strategy(_: Any) -> Any:
            inner = ContextWindowCompactionStrategy(
                max_context_window_tokens=2_000, max_output_tokens=1_000
            )

            async def spied(messages: list[Any]) -> bool:
                changed = await inner(messages)
                believed.append(included_token_count(messages))
                return changed

            return spied

        # 10,000 tokens by the library's own estimate.
        self.turns(1, instructions="x" * 40_000, compaction_strategy=strategy)
        self.assertLess(believed[0], 100)

    def summary_of(self, sizes: list[int]) -> list[str]:
        """Lines of the transcript that the model is to summarise; the last four stay."""
        from agent_framework import Message, SummarizationStrategy, apply_compaction

        client = self.fake_client()
        messages = [Message("user", [str(n) * size]) for n, size in enumerate(sizes)]
        strategy = SummarizationStrategy(client=client)
        self.left = asyncio.run(apply_compaction(messages, strategy=strategy))
        return [line.split("] ")[1][0] for line in client.told[0].splitlines()]

    def fake_client(self) -> Any:
        from agent_framework import ChatResponse, Message

        class Client:
            def __init__(self) -> None:
                self.told: list[str] = []
                self.prompts: list[str] = []

            async def get_response(self, messages: list[Any], **_: Any) -> Any:
                self.prompts.append(messages[0].text)
                self.told.append(messages[1].text)
                return ChatResponse(messages=[Message("assistant", ["S"])])

        return Client()

    def test_not_everything_older_is_summarised(self) -> None:
        # 2000 tokens each, six of them to remove: three fit into 8000 next to the prompt.
        self.assertEqual(self.summary_of([8_000] * 10), list("012"))
        self.assertEqual([m.text[0] for m in self.left], ["S", *"3456789"])

    def test_what_is_too_large_for_a_summary_is_never_left_out(self) -> None:
        self.assertEqual(self.summary_of([40_000] + [4] * 9), list("12345"))
        self.assertEqual(len(self.left[0].text), 40_000)

    def test_the_prompt_asks_for_five_sentences_and_not_for_tool_calls(self) -> None:
        from agent_framework import Message, SummarizationStrategy, apply_compaction

        client = self.fake_client()
        messages = [Message("user", [str(n)]) for n in range(7)]
        asyncio.run(apply_compaction(messages, strategy=SummarizationStrategy(client=client)))
        self.assertIn("five sentences", client.prompts[0])
        for word in "tool", "decision", "preference", "fact":
            self.assertNotIn(word, client.prompts[0].lower())

    def test_a_shortened_tool_result_can_be_as_long_as_before(self) -> None:
        from agent_framework import (
            Content,
            Message,
            ToolResultCompactionStrategy,
            apply_compaction,
        )

        def use(id: str) -> list[Any]:
            call = Content.from_function_call(id, "read", arguments='{"path": "a.py"}')
            result = Content.from_function_result(id, result="x" * 4_000)
            return [Message("assistant", ["Let me see.", call]), Message("tool", [result])]

        strategy = ToolResultCompactionStrategy()
        given = [*use("a"), *use("b")]
        line = asyncio.run(apply_compaction(given, strategy=strategy))[0].text
        self.assertEqual(line, f"[Tool results: read: {'x' * 4_000}]")


@unittest.skipUnless(HAVE["langchain"], "langchain is not installed")
class LangChain(unittest.TestCase):
    def summarised(self, messages: list[Any], **options: Any) -> list[Any]:
        """What stays; prompts of the summaries are noted."""
        from langchain.agents.middleware import SummarizationMiddleware
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        prompts: list[str] = []

        class Model(GenericFakeChatModel):
            def _generate(self, messages: Any, *_: Any, **__: Any) -> Any:
                prompts.append(str(messages[0].content))
                return ChatResult(generations=[ChatGeneration(message=AIMessage("S"))])

        middleware = SummarizationMiddleware(model=Model(messages=iter([])), **options)
        self.prompts = prompts
        update = middleware.before_model({"messages": messages}, None)  # type: ignore
        return messages if update is None else update["messages"][1:]

    def test_only_the_end_of_what_goes_is_summarised(self) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        messages: list[Any] = []
        for n in range(10):
            messages += [HumanMessage(f"ask {n}"), AIMessage(f"fact {n} " + "x" * 8_000)]
        self.summarised(messages, trigger=("messages", 10), keep=("messages", 2))
        [prompt] = self.prompts
        # Of the facts 0 to 8 that are replaced.
        self.assertEqual([n for n in range(10) if f"fact {n}" in prompt], [8])

    def test_a_long_turn_is_replaced_without_a_summary(self) -> None:
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        messages: list[Any] = [HumanMessage("the task")]
        for n in range(10):
            call = {"name": "read", "id": str(n), "args": {}}
            messages.append(AIMessage("", tool_calls=[call]))
            messages.append(ToolMessage("x" * 8_000, tool_call_id=str(n)))
        summary, *_ = self.summarised(messages, trigger=("messages", 10), keep=("messages", 2))
        self.assertEqual(self.prompts, [])
        self.assertIn("too long to summarize", summary.content)

    def cleared(self, results: int, **options: Any) -> list[bool]:
        from langchain.agents.middleware import ClearToolUsesEdit
        from langchain_core.messages import AIMessage, ToolMessage

        messages: list[Any] = []
        for n in range(results):
            call = {"name": "read", "id": str(n), "args": {}}
            messages.append(AIMessage("", tool_calls=[call]))
            messages.append(ToolMessage("x" * 100, tool_call_id=str(n)))

        def count(given: Any) -> int:
            return sum(len(m.content) for m in given)

        ClearToolUsesEdit(**options).apply(messages, count_tokens=count)
        return [m.content == "[cleared]" for m in messages if isinstance(m, ToolMessage)]

    def test_clearing_goes_further_than_needed(self) -> None:
        # 1000 tokens: clearing one result would be enough.
        self.assertEqual(self.cleared(10, trigger=950), [True] * 7 + [False] * 3)

    def test_the_least_to_clear_is_the_most(self) -> None:
        # 1000 tokens: five results would have to go.
        self.assertEqual(self.cleared(10, trigger=600, clear_at_least=50).count(True), 1)

    def test_less_than_the_least_is_cleared_all_the_same(self) -> None:
        self.assertEqual(self.cleared(10, trigger=600, clear_at_least=5_000).count(True), 7)


@unittest.skipUnless(HAVE["openhands"], "openhands-sdk is not installed")
class OpenHands(unittest.TestCase):
    def setUp(self) -> None:
        from adapter_bench import Bench
        from ctxbench.adapters.openhands import OpenHands

        self.bench = Bench(OpenHands, window=100_000, max_size=8, keep_first=1)

    def test_a_summary_is_told_the_beginning_of_each_result_and_no_arguments(self) -> None:
        from adapter_bench import use, user

        bench = self.bench
        bench.add(*use("a", "x" * 480 + "seen" + "x" * 100 + "unseen", arguments='{"path":"a.py"}'))
        bench.add(*(user(str(n)) for n in range(8)))
        bench.replies = ["what was"]
        bench.ask()
        prompt = bench.asked[0]["messages"][0]["content"]
        self.assertIn("seen", prompt)
        for lost in "unseen", "a.py":
            self.assertNotIn(lost, prompt)

    def test_a_hard_reset_forgets_the_system_prompt(self) -> None:
        from openhands.sdk.context.condenser import LLMSummarizingCondenser
        from openhands.sdk.context.view import View
        from openhands.sdk.event import MessageEvent, SystemPromptEvent
        from openhands.sdk.event.condenser import CondensationRequest
        from openhands.sdk.llm import Message, TextContent

        self.bench.ask()
        self.bench.replies = ["what was"]
        model = self.bench._program._strategy.llm
        said = Message(role="user", content=[TextContent(text="task")])
        events = [
            SystemPromptEvent(system_prompt=TextContent(text="be brief"), tools=[]),
            MessageEvent(source="user", llm_message=said),
            CondensationRequest(),
        ]
        condenser = LLMSummarizingCondenser(llm=model)
        events.append(condenser.condense(View.from_events(events), agent_llm=model))
        roles = [e.to_llm_message().role for e in View.from_events(events).events]
        self.assertEqual(roles, ["user"])


if __name__ == "__main__":
    unittest.main()
