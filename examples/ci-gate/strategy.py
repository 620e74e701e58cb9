"""The strategy under test: the task, the last request and the newest messages, within half of the window."""

from ctxbench import strategy


@strategy
def newest_half(messages, ctx, share: float = 0.5):
    limit = int(ctx.model.window * share)
    start = 1
    while start < len(messages) - 1 and ctx.count_tokens(shown(messages, start)) > limit:
        start += 1
        while start < len(messages) and messages[start]["role"] == "tool":
            start += 1  # A result goes with its call.
    return shown(messages, start)


def shown(messages, start):
    asked = [m for m in messages[1:start] if m["role"] == "user"][-1:]
    return messages[:1] + asked + messages[start:]


if __name__ == "__main__":
    newest_half.run()
