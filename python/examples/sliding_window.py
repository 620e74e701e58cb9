"""When the window is nearly full, the oldest turns go: the built-in `sliding-window`."""

from ctxbench import Compaction, Context, Keep, Strategy, Trigger


class SlidingWindow(Strategy):
    name = "sliding-window"
    version = "1"

    #: Share of the window from which turns are dropped, and the share to come down to.
    high: float = 0.9
    low: float = 0.7

    def context(self, ctx: Context) -> Keep | None:
        used = ctx.count_tokens()
        limit = int(ctx.model.window * self.high)
        if used < limit:
            return None
        kept = self.slide(ctx, int(ctx.model.window * self.low))
        return Keep(
            kept,
            compaction=Compaction("drop", "slide") if kept else None,
            trigger=Trigger("before_request", used, limit),
        )

    def overflow(self, ctx: Context) -> Keep | None:
        if ctx.attempt > 4:
            return None
        kept = self.slide(ctx, int(ctx.model.window * self.low / (ctx.attempt + 1)))
        return Keep(kept, compaction=Compaction("drop", "slide")) if kept else None

    def slide(self, ctx: Context, target: int) -> list[dict] | None:
        """Without its oldest turns, then without the oldest steps of the newest turn, until at
        most `target` tokens are left or nothing more can go."""
        messages = ctx.messages
        turns = [i for i, m in enumerate(messages) if m["role"] == "user"]
        if not turns:
            return None
        newest = turns[-1]
        steps = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i > newest]
        best = None
        for cut in turns[1:] + steps[1:]:
            # The user message of the newest turn stays when its steps go.
            head = messages[newest : newest + 1] if cut > newest else []
            best = head + messages[cut:]
            if ctx.count_tokens(best) <= target:
                break
        return best if best and len(best) < len(messages) else None


if __name__ == "__main__":
    SlidingWindow.run()
