"""The official Anthropic SDK, unmodified, against `ctxbench serve`. Usage: anthropic_check.py http://127.0.0.1:PORT"""

import sys
import uuid

import anthropic

from check import fault, raises, run

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="none", max_retries=0)
MODEL = "claude-sonnet-4-6"
TOOLS = [
    {
        "name": "read_file",
        "description": "Reads a file",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]
CALL = 'Please do this:\ncall read_file {"path": "a b.txt", "lines": [1, 2.50]}'
EDITING = ["context-management-2025-06-27"]
COMPACT = ["compact-2026-01-12"]
ON_DEMAND = ["compact-2026-09-04"]
# More than the 50,000 tokens from which a compaction may be asked for.
LONG = "The parser of the archive reads one line after the other. " * 6_000


def user(text):
    return {"role": "user", "content": text}


def ask(text, **more):
    return client.messages.create(model=MODEL, max_tokens=500, messages=[user(text)], **more)


def same(streamed, whole):
    """Both replies say the same, up to what is new in each: its id, and what the cache did."""
    a, b = streamed.to_dict(), whole.to_dict()
    for reply in (a, b):
        reply.pop("id")
        reply.pop("usage")
        for block in reply["content"]:
            block.pop("parsed_output", None)
            if block["type"] == "tool_use":
                block.pop("id")
    assert a.pop("stop_details", None) is None
    b.pop("stop_details", None)
    assert a == b, f"{a}\n{b}"


def plain():
    reply = ask("Hello there")
    assert reply.type == "message" and reply.role == "assistant" and reply.model == MODEL
    assert reply.stop_reason == "end_turn"
    assert reply.content[0].text == "You said: Hello there"
    # "Hello there" is two tokens of o200k, 1.17 each; a block costs 34 more.
    assert reply.usage.input_tokens == 36, reply.usage
    assert reply.usage.output_tokens > 4
    assert reply._request_id.startswith("req_")


def streaming():
    text = "Count the words of this rather long sentence, piece by piece, as they come in."
    with client.messages.stream(model=MODEL, max_tokens=500, messages=[user(text)]) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) > 2 and "".join(pieces) == f"You said: {text}"
    whole = ask(text)
    same(final, whole)
    assert final.usage.output_tokens == whole.usage.output_tokens
    kinds = [e.type for e in client.messages.create(model=MODEL, max_tokens=500, messages=[user(text)], stream=True)]
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"], kinds


def tools_round_trip():
    first = ask(CALL, tools=TOOLS)
    assert first.stop_reason == "tool_use"
    call = first.content[-1]
    assert call.type == "tool_use" and call.name == "read_file"
    assert call.input == {"path": "a b.txt", "lines": [1, 2.5]}
    with client.messages.stream(model=MODEL, max_tokens=500, messages=[user(CALL)], tools=TOOLS) as stream:
        same(stream.get_final_message(), first)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "first line"}]}
    talk = [user(CALL), {"role": "assistant", "content": first.content}, result]
    second = client.messages.create(model=MODEL, max_tokens=500, messages=talk, tools=TOOLS)
    assert "first line" in second.content[0].text and second.stop_reason == "end_turn"
    # A call without its result is refused.
    error = raises(anthropic.BadRequestError, lambda: client.messages.create(model=MODEL, max_tokens=9, messages=talk[:2] + [user("x")]))
    assert call.id in str(error)


def tool_runner():
    @anthropic.beta_tool
    def read_file(path: str) -> str:
        """Reads a file

        Args:
            path: Which one
        """
        return f"contents of {path}"

    said = 'call read_file {"path": "notes"}'
    runner = client.beta.messages.tool_runner(model=MODEL, max_tokens=500, messages=[user(said)], tools=[read_file])
    assert "contents of notes" in runner.until_done().content[0].text


def thinking():
    settings = {"type": "enabled", "budget_tokens": 1024}
    more = {"model": MODEL, "max_tokens": 2000, "thinking": settings}
    whole = client.messages.create(messages=[user("Think first")], **more)
    assert [b.type for b in whole.content] == ["thinking", "text"]
    assert whole.content[0].thinking and whole.content[0].signature
    with client.messages.stream(messages=[user("Think first")], **more) as stream:
        same(stream.get_final_message(), whole)
    assert [b.type for b in ask("Think first").content] == ["text"]


def cache_over_two_calls():
    # A unique prefix, so that no other check has written it.
    words = f"Session {uuid.uuid4()}. " + "A rule that always holds, whatever else may happen. " * 300
    system = [{"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}]
    first, second = (ask("Hello", system=system).usage for _ in range(2))
    assert first.cache_creation_input_tokens > 1024 and first.cache_read_input_tokens == 0, first
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens, second
    assert second.cache_creation_input_tokens == 0 and second.input_tokens == first.input_tokens
    with client.messages.stream(model=MODEL, max_tokens=500, messages=[user("Hello")], system=system) as stream:
        third = stream.get_final_message().usage
    assert third.cache_read_input_tokens == second.cache_read_input_tokens
    hour = [{**system[0], "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    hour[0]["text"] = "One hour: " + words
    assert ask("Hello", system=hour).usage.cache_creation.ephemeral_1h_input_tokens > 1024


def talk_with_tools(n):
    messages = [user("Read the files")]
    for i in range(n):
        call = {"type": "tool_use", "id": f"toolu_{i}", "name": "read_file", "input": {"path": f"file {i}"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{i}", "content": f"line of file {i}\n" * 100}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return messages


def context_editing():
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": 3},
        "keep": {"type": "tool_uses", "value": 2},
    }
    more = dict(model=MODEL, messages=talk_with_tools(5), tools=TOOLS, betas=EDITING, context_management={"edits": [edit]})
    reply = client.beta.messages.create(max_tokens=500, **more)
    (applied,) = reply.context_management.applied_edits
    assert applied.type == "clear_tool_uses_20250919" and applied.cleared_tool_uses == 3, applied
    assert applied.cleared_input_tokens > 3 * 400
    with client.beta.messages.stream(max_tokens=500, **more) as stream:
        assert stream.get_final_message().context_management.applied_edits[0].cleared_tool_uses == 3
    count = client.beta.messages.count_tokens(**more)
    before = count.context_management.original_input_tokens
    assert before - count.input_tokens == applied.cleared_input_tokens, (count, applied)
    assert client.messages.create(model=MODEL, max_tokens=500, messages=talk_with_tools(5), tools=TOOLS).usage.input_tokens == before


def thinking_cleared():
    settings = {"type": "enabled", "budget_tokens": 1024}
    messages = []
    for i in range(3):
        messages.append(user(f"Question {i}"))
        reply = client.messages.create(model=MODEL, max_tokens=2000, messages=messages, thinking=settings)
        messages.append({"role": "assistant", "content": reply.content})
    # The turn that begins now is one of the two. Older models keep only it by default.
    edit = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}}
    reply = client.beta.messages.create(
        model=MODEL, max_tokens=2000, messages=messages + [user("And now?")], thinking=settings, betas=EDITING,
        context_management={"edits": [edit]},
    )
    (applied,) = reply.context_management.applied_edits
    assert applied.cleared_thinking_turns == 2, applied


def compaction(pause):
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}, "pause_after_compaction": pause}
    messages = [user(LONG), {"role": "assistant", "content": "Read."}, user("Go on")]
    return dict(model=MODEL, max_tokens=500, messages=messages, betas=COMPACT, context_management={"edits": [edit]})


def compaction_with_pause():
    more = compaction(True)
    with client.beta.messages.stream(**more) as stream:
        paused = stream.get_final_message()
    assert paused.stop_reason == "compaction"
    (block,) = paused.content
    assert block.type == "compaction" and block.content
    assert [i.type for i in paused.usage.iterations] == ["compaction"]
    assert paused.usage.iterations[0].input_tokens > 50_000 and paused.usage.input_tokens == 0
    # The client continues from the block; earlier messages do not count.
    more["messages"] = more["messages"][:-1] + [{"role": "assistant", "content": paused.content}, user("Go on")]
    reply = client.beta.messages.create(**more)
    assert reply.content[0].text == "You said: Go on" and reply.usage.input_tokens < 6_000, reply.usage


def compaction_at_the_threshold():
    more = compaction(False)
    whole = client.beta.messages.create(**more)
    assert [b.type for b in whole.content] == ["compaction", "text"] and whole.stop_reason == "end_turn"
    assert [i.type for i in whole.usage.iterations] == ["compaction", "message"]
    assert whole.usage.input_tokens == whole.usage.iterations[1].input_tokens < 6_000
    with client.beta.messages.stream(**more) as stream:
        final = stream.get_final_message()
    same(final, whole)
    assert [i.type for i in final.usage.iterations] == ["compaction", "message"]
    more["context_management"]["edits"][0]["trigger"]["value"] = 49_999
    raises(anthropic.BadRequestError, lambda: client.beta.messages.create(**more))


def compaction_on_demand():
    talk = [user("The port is 8443. Remember it."), {"role": "assistant", "content": "I will."}, user("And the host is db-7.")]
    more = dict(model=MODEL, max_tokens=4096, betas=ON_DEMAND)
    reply = client.beta.messages.create(messages=talk, compaction={"type": "summarize"}, **more)
    (block,) = reply.content
    assert block.type == "compaction" and block.content and reply.stop_reason == "compaction"
    with client.beta.messages.stream(messages=talk, compaction={"type": "summarize"}, **more) as stream:
        assert stream.get_final_message().content[0].content == block.content
    after = client.beta.messages.create(messages=[{"role": "assistant", "content": reply.content}, user("Which port?")], **more)
    assert after.content[0].text == "You said: Which port?"
    misplaced = [user("x"), {"role": "assistant", "content": reply.content}, user("y")]
    # The SDK has a class for each error code of a compaction.
    raises(anthropic.types.CompactionBlockMisplacedError, lambda: client.beta.messages.create(messages=misplaced, **more))
    only = [{"role": "assistant", "content": reply.content}]
    again = lambda: client.beta.messages.create(messages=only, compaction={"type": "summarize"}, **more)
    raises(anthropic.types.CompactionNothingToSummarizeError, again)


def counting():
    talk = [user("Hello there")]
    assert client.messages.count_tokens(model=MODEL, messages=talk).input_tokens == 36
    with_tools = client.messages.count_tokens(model=MODEL, messages=talk, tools=TOOLS).input_tokens
    assert with_tools == client.messages.create(model=MODEL, max_tokens=9, messages=talk, tools=TOOLS).usage.input_tokens > 36


def largest_reply():
    # 34 for the block and 1.17 for each token of o200k: four of them are 4.68, which makes 39.
    reply = client.messages.create(model=MODEL, max_tokens=39, messages=[user("one two three four five six seven eight nine ten")])
    assert reply.stop_reason == "max_tokens" and reply.usage.output_tokens == 39, reply


def overflow():
    error = raises(anthropic.BadRequestError, lambda: ask("word " * 210_000))
    assert error.status_code == 400 and error.body["error"]["type"] == "invalid_request_error"
    assert "prompt is too long" in str(error) and "> 200000 maximum" in str(error)
    error = raises(anthropic.BadRequestError, lambda: ask("short", extra_headers=fault("overflow")))
    assert "prompt is too long" in str(error)


def errors():
    error = raises(anthropic.NotFoundError, lambda: client.messages.create(model="claude-none", max_tokens=9, messages=[user("x")]))
    assert error.body["error"]["type"] == "not_found_error"
    raises(anthropic.BadRequestError, lambda: client.messages.create(model=MODEL, max_tokens=9, messages=[]))
    raises(anthropic.BadRequestError, lambda: client.messages.create(model=MODEL, max_tokens=128_001, messages=[user("x")], stream=True))
    raises(anthropic.NotFoundError, lambda: client.get("/v1/nothing", cast_to=object))
    for status, kind in [("500", anthropic.InternalServerError), ("529", anthropic.OverloadedError), ("401", anthropic.AuthenticationError)]:
        raises(kind, lambda: ask("x", extra_headers=fault(status)))
    raises(anthropic.APITimeoutError, lambda: client.with_options(timeout=0.3).messages.create(
        model=MODEL, max_tokens=9, messages=[user("x")], extra_headers=fault("slow=3000")))
    assert any(m.id == MODEL for m in client.models.list())


def retried_by_the_sdk():
    once = fault(f"429;retry-after=1;times=1;id={uuid.uuid4()}")
    error = raises(anthropic.RateLimitError, lambda: ask("x", extra_headers=fault("429;retry-after=7")))
    assert error.response.headers["retry-after"] == "7"
    patient = client.with_options(max_retries=2)
    reply = patient.messages.with_raw_response.create(model=MODEL, max_tokens=99, messages=[user("Again")], extra_headers=once)
    assert reply.retries_taken == 1 and reply.parse().content[0].text == "You said: Again"


def cut_stream():
    try:
        with client.messages.stream(model=MODEL, max_tokens=99, messages=[user("Hello")], extra_headers=fault("cut=4")) as stream:
            seen = [e.type for e in stream]
    except Exception as e:
        assert not isinstance(e, anthropic.APIStatusError), e
        return
    raise AssertionError(f"the stream ended as if nothing had happened: {seen}")


run([
    plain, streaming, tools_round_trip, tool_runner, thinking, cache_over_two_calls, context_editing, thinking_cleared,
    compaction_with_pause, compaction_at_the_threshold, compaction_on_demand, counting, largest_reply, overflow, errors,
    retried_by_the_sdk, cut_stream,
])
