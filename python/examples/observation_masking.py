"""Every tool result but the newest shows a placeholder: the built-in `observation-masking`."""

from ctxbench import Breakpoint, Compaction, Context, Keep, Strategy

PLACEHOLDER = "(this output was left out to save space)"


class ObservationMasking(Strategy):
    name = "observation-masking"
    version = "1"

    #: Newest results that stay.
    keep: int = 10
    #: Results masked at a time.
    batch: int = 1
    #: `ends`: at the system part and the last two messages; `frontier`: also before the oldest
    #: result that is still shown.
    breakpoints: str = "frontier"

    def start(self, session) -> None:
        if self.breakpoints not in ("ends", "frontier"):
            raise ValueError(f"breakpoints={self.breakpoints}: expected ends or frontier")

    def context(self, ctx: Context) -> Keep:
        messages = ctx.messages
        live = [i for i, m in enumerate(messages) if is_live(m)]
        masks = len(live) >= self.keep + max(self.batch, 1)
        if masks:
            for i in live[: len(live) - self.keep]:
                messages[i] = {**messages[i], "content": PLACEHOLDER}
        return Keep(
            messages if masks else None,
            compaction=Compaction("clear", "mask") if masks else None,
            breakpoints=frontier(messages) if self.breakpoints == "frontier" else None,
        )

    def overflow(self, ctx: Context) -> None:
        return None


def is_live(message: dict) -> bool:
    return message["role"] == "tool" and message["content"] != PLACEHOLDER


def frontier(messages: list[dict]) -> list[Breakpoint] | None:
    """The default places and one more, before the oldest result that is still shown.

    Masking changes the prompt from there on; what stands before it stays in the cache.
    """
    results = [i for i, m in enumerate(messages) if m["role"] == "tool"]
    cleared = sum(not is_live(messages[i]) for i in results)
    if not 0 < cleared < len(results):
        return None
    # Neighbours on one side of the conversation are one message to the provider.
    by_model = [m["role"] == "assistant" for m in messages]
    ends = [i for i in range(len(messages)) if by_model[i : i + 1] != by_model[i + 1 : i + 2]]
    places = sorted({results[cleared] - 1, *ends[-2:]})
    return [Breakpoint("system")] + [Breakpoint(messages[i]["id"]) for i in places]


if __name__ == "__main__":
    ObservationMasking.run()
