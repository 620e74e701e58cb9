"""The event compaction of Google's ADK through the adapter, against what its documentation says."""

import unittest

try:
    import google.adk  # noqa: F401
except ImportError:
    print("google-adk is not installed: its adapter is not tested")
    raise unittest.SkipTest("google-adk is not installed") from None

from adapter_bench import Bench, assistant, use, user
from ctxbench.adapters.google_adk import GoogleAdk

# The library leaves out a summary that is longer than what it replaces.
LONG = " long" * 100


def turn(bench: Bench, n: int) -> list[str]:
    """A turn of the user: what its request shows, as numbers of turns and summaries."""
    bench.add(user(f"u{n}{LONG}"))
    shown = [t.removesuffix(LONG) for t in bench.ask("turn")]
    bench.add(assistant(f"a{n}{LONG}"))
    bench.ask("after_turn")
    return shown


class GoogleAdkTest(unittest.TestCase):
    def test_every_third_turn_ends_with_a_summary(self) -> None:
        bench = Bench(GoogleAdk)
        bench.replies = ["what was"]
        self.assertEqual([turn(bench, n) for n in (1, 2, 3)][-1], ["u1", "a1", "u2", "a2", "u3"])
        self.assertEqual(turn(bench, 4), ["what was", "u4"])
        self.assertEqual(turn(bench, 5), ["what was", "u4", "a4", "u5"])

    def test_a_summary_overlaps_with_the_last(self) -> None:
        bench = Bench(GoogleAdk)
        bench.replies = ["first", "second"]
        for n in range(1, 7):
            turn(bench, n)
        told = bench.asked[1]["messages"][0]["content"]
        for n in range(1, 7):
            # One turn of the overlap, and three new ones.
            self.assertEqual(f"u{n}{LONG}" in told, n >= 3, n)

    def test_without_an_interval_turns_are_no_reason(self) -> None:
        settings = {"token_threshold": 10_000, "event_retention_size": 2}
        bench = Bench(GoogleAdk, compaction_interval=0, **settings)
        for n in range(1, 9):
            self.assertEqual(len(turn(bench, n)), 2 * n - 1)

    def test_tokens_are_a_reason_before_a_request(self) -> None:
        settings = {"compaction_interval": 0, "token_threshold": 5000, "event_retention_size": 2}
        for used, shown in (4999, ["u1", "a1", "u2", "a2", "u3"]), (5000, ["what was", "a2", "u3"]):
            bench = Bench(GoogleAdk, **settings)
            bench.replies = ["what was"]
            turn(bench, 1)
            turn(bench, 2)
            bench.add(user(f"u3{LONG}"))
            now = bench.ask("turn", request_tokens=used)
            self.assertEqual([t.removesuffix(LONG) for t in now], shown, used)

    def test_a_call_stays_with_its_result(self) -> None:
        settings = {"compaction_interval": 0, "token_threshold": 500, "event_retention_size": 1}
        bench = Bench(GoogleAdk, **settings)
        bench.replies = ["what was"]
        bench.add(user(f"u1{LONG}"), assistant(f"a1{LONG}"), user("u2"), *use("a", "one"))
        shown = bench.ask("turn", request_tokens=500)
        self.assertEqual((shown[0], shown[-2:]), ("what was", [None, "one"]))

    def test_the_text_of_a_free_form_call_is_its_input(self) -> None:
        bench = Bench(GoogleAdk)
        bench.add(user("go"), *use("a", "done", "apply_patch", "*** Begin Patch"))
        self.assertEqual(bench.ask("step"), ["go", None, "done"])


if __name__ == "__main__":
    unittest.main()
