"""What `ctxbench import --to …` writes, held against the official packages: the models of `atif` and
the parameter types of the SDKs of OpenAI and Anthropic. DIR holds a folder per format, with a
document in each file.

    python exports_check.py DIR
"""

import functools
import json
import pathlib
import sys

from anthropic.types import MessageParam, TextBlockParam, ToolParam
from atif import Trajectory
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from pydantic import TypeAdapter

import check


def whole(value):
    """Types with iterables are checked while these are read."""
    if isinstance(value, dict):
        return {key: whole(v) for key, v in value.items()}
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return [whole(v) for v in value]


# Types that are checked while reading need their type until then.
adapter = functools.cache(TypeAdapter)


def takes(kind, value):
    """The type takes the value and leaves nothing of it out."""
    assert whole(adapter(kind).validate_python(value)) == value, f"{kind} drops a member of {value}"


def trajectories(trajectory):
    yield trajectory
    for inner in trajectory.subagent_trajectories or []:
        yield from trajectories(inner)


def atif(document):
    whole_document = Trajectory.model_validate(document)
    assert whole_document.to_json_dict() == document, "a member is not of the format"
    known = {t.trajectory_id for t in trajectories(whole_document)}
    for trajectory in trajectories(whole_document):
        for step in trajectory.steps:
            for result in step.observation.results if step.observation else []:
                for reference in result.subagent_trajectory_ref or []:
                    assert reference.trajectory_id in known, reference


def openai(document):
    assert set(document) <= {"model", "messages", "tools"}, set(document)
    for message in document["messages"]:
        takes(ChatCompletionMessageParam, message)
    for tool in document.get("tools", []):
        takes(ChatCompletionFunctionToolParam, tool)


def anthropic(document):
    assert set(document) <= {"model", "system", "messages", "tools"}, set(document)
    for block in document["system"] if isinstance(document.get("system"), list) else []:
        takes(TextBlockParam, block)
    for message in document["messages"]:
        takes(MessageParam, message)
    for tool in document.get("tools", []):
        takes(ToolParam, tool)


def checks(folder):
    for kind in (atif, openai, anthropic):
        for path in sorted((folder / kind.__name__).iterdir()):

            def one(kind=kind, path=path):
                kind(json.loads(path.read_text(encoding="utf-8")))

            one.__name__ = f"{kind.__name__} {path.name}"
            yield one


def refuses_others():
    """The checks can fail: each refuses what another format is."""
    message = {"role": "tool", "tool_call_id": "c", "content": "x"}
    for call in (
        lambda: atif({"schema_version": "ATIF-v1.8", "steps": []}),
        lambda: takes(MessageParam, message),
        lambda: takes(ChatCompletionMessageParam, {**message, "is_error": True}),
    ):
        try:
            call()
        except Exception:
            continue
        raise AssertionError("something wrong was taken")


check.run([refuses_others, *checks(pathlib.Path(sys.argv[1]))])
