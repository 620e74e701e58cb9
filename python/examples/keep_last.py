"""Shows the task, the last request and the newest messages."""

from ctxbench import strategy


@strategy
def keep_last(messages, ctx, keep: int = 20):
    start = max(1, len(messages) - keep)
    while start < len(messages) and messages[start]["role"] == "tool":
        start += 1  # A result goes with its call.
    asked = [m for m in messages[1:start] if m["role"] == "user"][-1:]
    return messages[:1] + asked + messages[start:]


if __name__ == "__main__":
    keep_last.run()
