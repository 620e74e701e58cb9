"""Shows the task and the newest messages."""

from ctxbench import strategy


@strategy
def keep_last(messages, ctx, keep: int = 20):
    start = max(1, len(messages) - keep)
    while start < len(messages) and messages[start]["role"] == "tool":
        start += 1  # A result goes with its call.
    return messages[:1] + messages[start:]


if __name__ == "__main__":
    keep_last.run()
