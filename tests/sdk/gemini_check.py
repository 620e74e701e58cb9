"""Google's official SDK, unmodified, against `ctxbench serve`. Usage: gemini_check.py http://127.0.0.1:PORT"""

import json
import sys
import uuid

from google import genai
from google.genai import errors, types

from check import fault, raises, run

client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=sys.argv[1]))
MODEL = "gemini-3.5-flash"
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = types.Tool(function_declarations=[
    types.FunctionDeclaration(name="read_file", description="Reads a file", parameters_json_schema=PARAMETERS)])
ARGUMENTS = {"path": "a b.txt", "lines": [1, 2.5]}
CALL = "Please do this:\ncall read_file " + json.dumps(ARGUMENTS)
SENTENCE = "Count the words of this rather long sentence, piece by piece, as they come in."


def config(**more):
    """Calls are left to this script."""
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(automatic_function_calling=off, **more)


def ask(contents, model=MODEL, **more):
    return client.models.generate_content(model=model, contents=contents, config=config(**more))


def stream(contents, **more):
    return client.models.generate_content_stream(model=MODEL, contents=contents, config=config(**more))


def user(text):
    return types.Content(role="user", parts=[types.Part.from_text(text=text)])


def plain():
    r = ask("Hello there")
    assert r.text == "You said: Hello there" and r.model_version == MODEL, r
    assert r.candidates[0].finish_reason == types.FinishReason.STOP and r.response_id
    u = r.usage_metadata
    # "Hello there" is two tokens, and a block costs four.
    assert (u.prompt_token_count, u.total_token_count) == (6, 6 + u.candidates_token_count), u


def system_instruction():
    u = ask("Hello there", system_instruction="Be brief").usage_metadata
    assert u.prompt_token_count == 12, u


def streaming():
    chunks = list(stream(SENTENCE))
    pieces = [c.text for c in chunks]
    assert len(pieces) > 2 and "".join(pieces) == f"You said: {SENTENCE}", pieces
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert chunks[-1].usage_metadata == ask(SENTENCE).usage_metadata


def tools_round_trip():
    first = ask(CALL, tools=[TOOL])
    call = first.function_calls[0]
    assert (call.name, call.args) == ("read_file", ARGUMENTS) and call.id
    streamed = [c for chunk in stream(CALL, tools=[TOOL]) for c in chunk.function_calls or []]
    assert [c.args for c in streamed] == [ARGUMENTS]
    talk = [user(CALL), first.candidates[0].content]
    # With the id of the call, and without one, as the SDK's own helper makes it.
    answer = types.FunctionResponse(id=call.id, name=call.name, response={"output": "first line"})
    for part in [types.Part(function_response=answer), types.Part.from_function_response(name=call.name, response={"output": "first line"})]:
        second = ask([*talk, types.Content(role="user", parts=[part])], tools=[TOOL])
        assert f"The call {call.id} returned: first line" in second.text, second.text
    failed = types.Part.from_function_response(name=call.name, response={"error": "no such file"})
    assert "failed: no such file" in ask([*talk, types.Content(role="user", parts=[failed])], tools=[TOOL]).text
    error = raises(errors.ClientError, lambda: ask(talk, tools=[TOOL]))
    assert (error.code, error.status) == (400, "INVALID_ARGUMENT") and "function response parts" in error.message


def two_calls():
    r = ask(CALL + '\ncall read_file {"path": "b"}', tools=[TOOL])
    assert [c.args["path"] for c in r.function_calls] == ["a b.txt", "b"]


def automatic_function_calling():
    def read_file(path: str) -> str:
        """Reads a file."""
        return f"text of {path}"

    r = client.models.generate_content(
        model=MODEL, contents='call read_file {"path": "a.txt"}', config=types.GenerateContentConfig(tools=[read_file]))
    assert "returned: " in r.text and "text of a.txt" in r.text, r.text


def chat():
    talk = client.chats.create(model=MODEL)
    assert talk.send_message("One").text == "You said: One"
    assert "".join(c.text for c in talk.send_message_stream("Two")) == "You said: Two"
    assert [c.role for c in talk.get_history()] == ["user", "model"] * 2


def thoughts():
    more = dict(thinking_config=types.ThinkingConfig(include_thoughts=True))
    r = ask("Think first", **more)
    thought, said = r.candidates[0].content.parts
    assert thought.thought and thought.text and said.thought_signature, r
    assert r.text == "You said: Think first" and r.usage_metadata.thoughts_token_count > 0
    again = [p for c in stream("Think first", **more) for p in c.candidates[0].content.parts]
    assert [bool(p.thought) for p in again][0] and again[-1].thought_signature == said.thought_signature
    # The reply can be sent again.
    assert ask([user("Think first"), r.candidates[0].content, user("On")], **more).text == "You said: On"


def count():
    assert client.models.count_tokens(model=MODEL, contents="Hello there").total_tokens == 6
    assert client.models.count_tokens(model=MODEL, contents=[user("Hello there")] * 2).total_tokens == 12


def implicit_cache():
    rule = f"Session {uuid.uuid4()}. " + "A rule that always holds, whatever else may happen. " * 500
    first = ask("Hello", system_instruction=rule).usage_metadata
    second = ask("Hello again", system_instruction=rule).usage_metadata
    assert not first.cached_content_token_count, first
    assert second.cached_content_token_count > 4_096, second
    assert second.prompt_token_count - second.cached_content_token_count == 6, second


def models():
    all_models = {m.name: m for m in client.models.list()}
    assert all_models[f"models/{MODEL}"].input_token_limit == 1_048_576
    assert client.models.get(model=MODEL).name == f"models/{MODEL}"


def limit():
    r = ask(SENTENCE, max_output_tokens=8)
    assert r.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS and SENTENCE not in r.text


def overflow():
    error = raises(errors.ClientError, lambda: ask("word " * 1_100_000))
    assert (error.code, error.status) == (400, "INVALID_ARGUMENT"), error
    assert "exceeds the maximum number of tokens allowed (1048576)" in error.message, error.message


def error_classes():
    error = raises(errors.ClientError, lambda: ask("x", model="gemini-none"))
    assert (error.code, error.status) == (404, "NOT_FOUND"), error
    for words, kind, status in [
        ("429;retry-after=7", errors.ClientError, "RESOURCE_EXHAUSTED"), ("401", errors.ClientError, "UNAUTHENTICATED"),
        ("500", errors.ServerError, "INTERNAL"), ("503", errors.ServerError, "UNAVAILABLE"),
    ]:
        options = types.HttpOptions(headers=fault(words))
        error = raises(kind, lambda: ask("x", http_options=options))
        assert error.status == status, error
        if "retry-after" in words:
            assert error.details["error"]["details"][0]["retryDelay"] == "7s", error.details
    raises(errors.ClientError, lambda: client.models.count_tokens(model="gemini-none", contents="x"))


def retried_by_the_sdk():
    headers = fault(f"503;times=1;id={uuid.uuid4()}")
    retry = types.HttpRetryOptions(attempts=3, initial_delay=0.1, jitter=0)
    assert ask("Again", http_options=types.HttpOptions(headers=headers, retry_options=retry)).text == "You said: Again"


def cut_stream():
    options = types.HttpOptions(headers=fault("cut=2"))
    seen = []
    try:
        for chunk in stream(SENTENCE, http_options=options):
            seen.append(chunk)
    except Exception as e:
        assert "incomplete" in str(e).lower() or "closed" in str(e).lower() or "peer" in str(e).lower(), repr(e)
    else:
        raise AssertionError("the break went unnoticed")
    assert len(seen) <= 2 and not any(c.candidates[0].finish_reason for c in seen)


run([
    plain, system_instruction, streaming, tools_round_trip, two_calls, automatic_function_calling, chat, thoughts, count,
    implicit_cache, models, limit, overflow, error_classes, retried_by_the_sdk, cut_stream,
])
