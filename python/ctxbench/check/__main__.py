"""`python3 -m ctxbench.check [--set KEY=VALUE] [--timeout SECONDS] COMMAND…`"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from .play import Player, Report


def main(argv: list[str] | None = None) -> int:
    args = parsed(argv)
    settings = dict(setting(s) for s in args.set)

    def play(model_fails: bool = False) -> Report:
        return Player(command(args.command), settings, args.timeout, model_fails).run()

    report = play()
    problems, notes = list(report.problems), list(report.notes)
    if not problems:
        if difference := differing(report, play()):
            problems.append(difference)
        if report.questions and (failed := play(model_fails=True)).problems:
            notes.append(f"when the model fails, the row ends: {failed.problems[0]}")
    if not problems and not report.compactions:
        notes.append("nothing was compacted: the session is short; try smaller limits with --set")
    name = report.name or " ".join(args.command)
    print(
        f"{name}: {report.calls} calls, {report.compactions} compactions, "
        f"{report.questions} questions to the model"
    )
    for note in notes:
        print(f"note: {note}")
    for problem in dict.fromkeys(problems):
        print(f"wrong: {problem}")
    if report.stderr:
        print("the last lines of standard error:")
        for line in report.stderr:
            print(f"  {line}")
    if not problems:
        print("ok")
    return 1 if problems else 0


def parsed(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m ctxbench.check",
        description="Plays a scripted session against a strategy and says which rules of the "
        "exec protocol it breaks. Exit code 0: none. Words after `--` belong to the command.",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="a program, or FILE.py[:NAME]"
    )
    args = parser.parse_args(argv)
    if args.command[:1] == ["--"]:
        del args.command[0]
    elif late := [word for word in args.command if word.split("=")[0] in ("--set", "--timeout")]:
        parser.error(f"options come before the command, `{late[0]}` comes after it")
    if not args.command:
        parser.error("expected a command, such as mine.py or node mine.mjs")
    return args


def command(words: list[str]) -> list[str]:
    """The command line; a lone `mine.py` is started as by ctxbench, `mine.py:NAME` by the kit."""
    if len(words) == 1:
        word = words[0]
        if word.endswith(".py"):
            return [sys.executable, word]
        if ".py:" in word:
            return [sys.executable, "-m", "ctxbench", word]
        # Quoted as a whole, as after `exec:`.
        return shlex.split(word)
    return words


def setting(text: str) -> tuple[str, Any]:
    """`key=value` as ctxbench passes it on: numbers and truth as such, all else as text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise SystemExit(f"--set {text}: expected KEY=VALUE")
    for parse in (int, float):
        try:
            return key, parse(value)
        except ValueError:
            pass
    return key, {"true": True, "false": False}.get(value, value)


def differing(first: Report, second: Report) -> str | None:
    """Where two runs of the same script differ."""
    if second.problems:
        return f"the second run of the same session went wrong: {second.problems[0]}"
    for i, (a, b) in enumerate(zip(first.said, second.said)):
        if a != b:
            return f"message {i + 1} differs in a second run of the same session"
    if len(first.said) != len(second.said):
        return "a second run of the same session makes more or fewer calls"
    return None


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has read enough. Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)
