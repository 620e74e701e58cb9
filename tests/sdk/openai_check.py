"""The official OpenAI SDK, unmodified, against `ctxbench serve`. Usage: openai_check.py http://127.0.0.1:PORT"""

import json
import sys
import uuid

import openai

from check import fault, raises, run

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
MODEL = "gpt-5.5"
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = {"type": "function", "name": "read_file", "description": "Reads a file", "parameters": PARAMETERS, "strict": False}
CHAT_TOOL = {"type": "function", "function": {"name": "read_file", "description": "Reads a file", "parameters": PARAMETERS}}
CALL = 'Please do this:\ncall read_file {"path": "a b.txt", "lines": [1, 2.50]}'
ARGUMENTS = '{"path": "a b.txt", "lines": [1, 2.50]}'
SENTENCE = "Count the words of this rather long sentence, piece by piece, as they come in."


def ask(text, **more):
    return client.responses.create(model=MODEL, input=text, **more)


def chat(text, **more):
    return client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}], **more)


def output(response):
    """What a response says, without ids of calls and items, which are new in each."""
    items = [i.to_dict() for i in response.output]
    for i in items:
        for key in ("id", "call_id", "parsed_arguments"):
            i.pop(key, None)
        for part in i.get("content") or []:
            part.pop("parsed", None)
    return items


def responses_plain():
    r = ask("Hello there")
    assert r.object == "response" and r.status == "completed" and r.model == MODEL
    assert r.output_text == "You said: Hello there"
    assert (r.usage.input_tokens, r.usage.total_tokens) == (6, 6 + r.usage.output_tokens), r.usage
    assert r._request_id.startswith("req_")


def responses_streaming():
    with client.responses.stream(model=MODEL, input=SENTENCE) as stream:
        pieces = [e.delta for e in stream if e.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert len(pieces) > 2 and "".join(pieces) == f"You said: {SENTENCE}"
    whole = ask(SENTENCE)
    assert output(final) == output(whole) and final.usage == whole.usage
    events = list(client.responses.create(model=MODEL, input=SENTENCE, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"


def responses_tools_round_trip():
    first = ask(CALL, tools=[TOOL])
    call = first.output[-1]
    assert call.type == "function_call" and call.arguments == ARGUMENTS
    with client.responses.stream(model=MODEL, input=CALL, tools=[TOOL]) as stream:
        assert output(stream.get_final_response()) == output(first)
    talk = [{"role": "user", "content": CALL}, *first.output]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "first line"}
    second = client.responses.create(model=MODEL, input=[*talk, result], tools=[TOOL])
    assert "first line" in second.output_text
    error = raises(openai.BadRequestError, lambda: client.responses.create(model=MODEL, input=talk, tools=[TOOL]))
    assert call.call_id in str(error)


def responses_reasoning():
    more = dict(reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"])
    r = ask("Think first", **more)
    assert [i.type for i in r.output] == ["reasoning", "message"]
    assert r.output[0].summary[0].text and r.output[0].encrypted_content
    with client.responses.stream(model=MODEL, input="Think first", **more) as stream:
        assert output(stream.get_final_response()) == output(r)
    assert r.usage.output_tokens_details.reasoning_tokens > 0
    again = client.responses.create(model=MODEL, input=[{"role": "user", "content": "Think first"}, *r.output, {"role": "user", "content": "And?"}])
    assert again.output_text == "You said: And?"


def cache_over_two_calls():
    rules = f"Session {uuid.uuid4()}. " + "A rule that always holds, whatever else may happen. " * 300
    first, second = (ask("Hello", instructions=rules).usage for _ in range(2))
    assert first.input_tokens == second.input_tokens > 2048
    assert first.input_tokens_details.cached_tokens == 0
    # Hits are whole steps of 128 tokens.
    cached = second.input_tokens_details.cached_tokens
    assert cached % 128 == 0 and second.input_tokens - 128 < cached <= second.input_tokens, second
    messages = [{"role": "system", "content": rules}, {"role": "user", "content": "Hello"}]
    first, second = (client.chat.completions.create(model=MODEL, messages=messages).usage for _ in range(2))
    assert first.prompt_tokens_details.cached_tokens == 0 < second.prompt_tokens_details.cached_tokens


def compact_endpoint():
    talk = [
        {"role": "user", "content": "The port is 8443. Remember it."},
        {"role": "assistant", "content": "I will."},
        {"role": "user", "content": "And the host is db-7."},
    ]
    compacted = client.responses.compact(model=MODEL, input=talk)
    assert compacted.object == "response.compaction"
    assert [i.type for i in compacted.output] == ["message", "message", "compaction"]
    texts = [i.content[0].text for i in compacted.output[:2]]
    assert texts == ["The port is 8443. Remember it.", "And the host is db-7."], texts
    assert compacted.output[-1].encrypted_content and compacted.usage.input_tokens > 0
    reply = client.responses.create(model=MODEL, input=[*compacted.output, {"role": "user", "content": "Which port?"}])
    assert reply.output_text == "You said: Which port?"


def compaction_at_the_threshold():
    talk = [{"role": "user", "content": "The parser reads one line after the other. " * 200}, {"role": "user", "content": "Go on"}]
    more = dict(model=MODEL, input=talk, context_management=[{"type": "compaction", "compact_threshold": 1_000}])
    r = client.responses.create(**more)
    assert [i.type for i in r.output] == ["compaction", "message"], r.output
    events = list(client.responses.create(stream=True, **more))
    done = [e.item.type for e in events if e.type == "response.output_item.done"]
    assert done == ["compaction", "message"]
    assert output(events[-1].response) == output(r)
    below = client.responses.create(model=MODEL, input="Hello", context_management=more["context_management"])
    assert [i.type for i in below.output] == ["message"]


def compaction_trigger():
    talk = [{"role": "user", "content": "The port is 8443."}, {"type": "compaction_trigger"}]
    events = list(client.responses.create(model=MODEL, input=talk, stream=True))
    (item,) = events[-1].response.output
    assert item.type == "compaction" and item.encrypted_content


def largest_reply():
    # "You said: one … ten" is 13 tokens of o200k, a block costs four more.
    r = ask("one two three four five six seven eight nine ten", max_output_tokens=17)
    assert r.status == "completed", r
    r = ask("one two three four five six seven eight nine ten", max_output_tokens=9)
    assert r.status == "incomplete" and r.incomplete_details.reason == "max_output_tokens" and r.usage.output_tokens == 9, r
    events = list(client.responses.create(model=MODEL, input="one two three four five six", max_output_tokens=6, stream=True))
    assert events[-1].type == "response.incomplete"
    c = chat("one two three four five six seven eight nine ten", max_completion_tokens=9)
    assert c.choices[0].finish_reason == "length"


def chat_plain_and_streaming():
    whole = chat(SENTENCE)
    assert whole.choices[0].message.content == f"You said: {SENTENCE}" and whole.choices[0].finish_reason == "stop"
    more = dict(model=MODEL, messages=[{"role": "user", "content": SENTENCE}], stream_options={"include_usage": True})
    chunks = list(client.chat.completions.create(stream=True, **more))
    said = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert len(said) > 2 and "".join(said) == whole.choices[0].message.content
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage, chunks[-1]
    assert all(c.usage is None for c in chunks[:-1])
    with client.chat.completions.stream(**more) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == whole.choices[0].message.content
    without = list(client.chat.completions.create(model=MODEL, messages=more["messages"], stream=True))
    assert all(c.choices for c in without)


def chat_tools_round_trip():
    first = chat(CALL, tools=[CHAT_TOOL])
    assert first.choices[0].finish_reason == "tool_calls"
    message = first.choices[0].message
    (call,) = message.tool_calls
    assert call.function.name == "read_file" and call.function.arguments == ARGUMENTS
    messages = [{"role": "user", "content": CALL}]
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=[CHAT_TOOL]) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0].function
    assert (streamed.name, streamed.arguments) == ("read_file", ARGUMENTS)
    talk = [*messages, message, {"role": "tool", "tool_call_id": call.id, "content": "first line"}]
    second = client.chat.completions.create(model=MODEL, messages=talk, tools=[CHAT_TOOL])
    assert "first line" in second.choices[0].message.content


def overflow():
    for call in (ask, chat):
        error = raises(openai.BadRequestError, lambda: call("word " * 1_000_000))
        assert error.code == "context_length_exceeded", error
        error = raises(openai.BadRequestError, lambda: call("short", extra_headers=fault("overflow")))
        assert error.code == "context_length_exceeded", error


def errors():
    error = raises(openai.NotFoundError, lambda: client.responses.create(model="gpt-none", input="x"))
    assert error.code == "model_not_found"
    raises(openai.NotFoundError, lambda: client.get("/nothing", cast_to=object))
    raises(openai.BadRequestError, lambda: client.responses.create(model=MODEL, input=[]))
    raises(openai.BadRequestError, lambda: ask("x", previous_response_id="resp_1"))
    for status, kind in [("500", openai.InternalServerError), ("401", openai.AuthenticationError)]:
        raises(kind, lambda: chat("x", extra_headers=fault(status)))
    raises(openai.APITimeoutError, lambda: client.with_options(timeout=0.3).responses.create(
        model=MODEL, input="x", extra_headers=fault("slow=3000")))
    assert any(m.id == MODEL for m in client.models.list())


def retried_by_the_sdk():
    error = raises(openai.RateLimitError, lambda: ask("x", extra_headers=fault("429;retry-after=7")))
    assert error.response.headers["retry-after"] == "7"
    once = fault(f"429;retry-after=1;times=1;id={uuid.uuid4()}")
    reply = client.with_options(max_retries=2).responses.with_raw_response.create(model=MODEL, input="Again", extra_headers=once)
    assert reply.retries_taken == 1 and reply.parse().output_text == "You said: Again"


def cut_stream():
    for call in (ask, chat):
        try:
            seen = list(call("Hello there, this is cut", stream=True, extra_headers=fault("cut=2")))
        except Exception as e:
            assert not isinstance(e, openai.APIStatusError), e
            continue
        raise AssertionError(f"the stream ended as if nothing had happened: {seen}")


def exact_arguments():
    """Numbers and escapes of arguments come as they were written, byte for byte."""
    given = '{"a": 1e5, "b": 1.10, "c": "\\u00e9\\/"}'
    call = ask("call read_file " + given, tools=[TOOL]).output[-1]
    assert call.arguments == given and json.loads(given)["c"] == "é/"


run([
    responses_plain, responses_streaming, responses_tools_round_trip, responses_reasoning, cache_over_two_calls, compact_endpoint,
    compaction_at_the_threshold, compaction_trigger, largest_reply, chat_plain_and_streaming, chat_tools_round_trip, overflow, errors,
    retried_by_the_sdk, cut_stream, exact_arguments,
])
