"""When the window is nearly full, a summary takes the place of all but the newest messages."""

from ctxbench import Compaction, Keep, ModelError, strategy

ASK = "Sum up what was asked, decided, found and done so far, with every name and value."


@strategy
def summarise(messages, ctx, share: float = 0.8, keep: int = 4):
    used = ctx.count_tokens()
    start = max(0, len(messages) - keep)
    while start and messages[start]["role"] == "tool":
        start -= 1  # A call stays with its results.
    if used < ctx.model.window * share or start < 2:
        return None
    try:
        # With the session's own system prompt and tools, the summarised part comes from the cache.
        ask = [*messages[:start], {"role": "user", "content": ASK}]
        summary = ctx.complete(ask, system=True, tools=True).text
    except ModelError as e:
        ctx.log(f"no summary: {e}")
        return None
    ctx.log(f"{start} messages of {used} tokens summed up")
    text = {"role": "user", "content": summary}
    return Keep([text, *messages[start:]], compaction=Compaction("summarise", "summarise"))


if __name__ == "__main__":
    summarise.run()
