"""Strategies for the tests; each is run as `programs.py:NAME`."""

import json
import os
import sys

from ctxbench import Again, Compaction, Fail, Keep, ModelError, Strategy, Trigger, strategy


@strategy
def unchanged(messages):
    return messages


@strategy(name="loud", version="7", scope="request")
def loud(messages, ctx, last: int = 4):
    """Prints, reads and starts a subprocess: none of it may reach the protocol."""
    print("hello")
    sys.__stdout__.write("hello again\n")
    os.system("echo and again")
    assert sys.stdin.read() == ""
    ctx.log("still here")
    return [messages[0]] + [m for m in messages[1:] if m["role"] == "user"][-last:]


class WithTool(Strategy):
    """Gives the model a tool of its own, which a setting describes in JSON."""

    tools: str = ""

    def context(self, ctx):
        said = ctx.complete(ctx.messages, tools=json.loads(self.tools))
        assert said.call == {"notes": [SUMMARY]}, said.content
        return None


SUMMARY = "The login page was fixed; the test of the session cookie still fails."


class Summarises(Strategy):
    """Has every moment; summarises all but the newest turn when 40 % of the window are full."""

    version = "2"
    share: float = 0.4
    anchored: bool = False

    def start(self, session):
        self.seen = []
        self.task = None

    def context(self, ctx):
        if ctx.count_tokens() < ctx.model.window * self.share:
            return None
        return self.summarised(ctx, ctx.messages)

    def summarised(self, ctx, messages):
        turns = [i for i, m in enumerate(messages) if m["role"] == "user"]
        old, new = messages[: turns[-1]], messages[turns[-1] :]
        if not old:
            return None
        ask = {"role": "user", "content": "Summarise."}
        try:
            said = ctx.complete([*old, ask], system=True, tools=True, max_tokens=500)
        except ModelError as e:
            ctx.log(f"{e.class_} {e.status}")
            return None
        made = {"role": "user", "content": "So far: " + said.text}
        return Keep(
            [made, *new],
            compaction=Compaction("summarise", "all", [m["id"] for m in old]),
            trigger=Trigger("share", ctx.count_tokens(), int(ctx.model.window * self.share)),
            params={"max_tokens": 800},
        )

    def manual(self, ctx):
        self.task = ctx.complete(ctx.messages, system="Be brief.", background=True)
        assert self.task.result(wait=False) is None
        try:
            return [{"role": "user", "content": self.task.result().text}]
        except ModelError:
            return None

    def idle(self, ctx):
        return None

    def admit(self, ctx, message):
        assert ctx.call.name == "shell" and ctx.call.arguments["command"]
        return {**message, "content": message["content"][:1000]}

    def reply(self, ctx):
        self.seen.append(ctx.stop_reason)

    def turn_end(self, ctx):
        assert ctx.usage.output_tokens == 50

    def error(self, ctx, error):
        return Again() if error.class_ == "rate_limited" else Fail("the server is down")

    def rewind(self, ctx, to):
        assert ctx.messages[-1]["id"] == to


@strategy
def parts_a_pair(messages):
    return messages[:2] + messages[3:]


@strategy
def parts_a_pair_with_a_text_of_its_own(messages):
    return [{"role": "user", "content": "What was before is gone."}, *messages[3:]] or messages


@strategy
def twice(messages):
    return ["m1", *messages]


@strategy
def unknown_id(messages):
    return [*messages, {"id": "m999", "role": "user", "content": "?"}]


@strategy
def raises(messages):
    return messages[1000]["content"]


@strategy
def changes_in_place(messages):
    messages[0]["content"] = "changed"
    return messages


@strategy
def wrong_shape(messages):
    return [*messages, {"role": "user"}]


class Random(Strategy):
    """Answers differently each time."""

    def context(self, ctx):
        ctx.log(os.getpid())


def wild(answers):
    """A program without the kit: answers as told, by method."""
    for line in sys.stdin:
        call = json.loads(line)
        said = answers.get(call["method"], {})
        print(
            said
            if isinstance(said, str)
            else json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": said}),
            flush=True,
        )


if __name__ == "__main__":
    wild(json.loads(sys.argv[1]))
