"""The adapter of token savers, with a fake program and a fake library in their place."""

import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from ctxbench import Call
from ctxbench.adapters.token_savers import (
    Entroly,
    Headroom,
    KompactProxy,
    LeanCtx,
    Rtk,
    Squeez,
    Tokf,
    only_program,
)
from ctxbench.strategy import Strategy

from fake import context, initialize, play, user

#: Runs a command in the shell of the environment and shows the first line.
WRAPPER = """#!/bin/sh
case "$1" in
  compress-output)
    grep -q '"tool_response": {"content": "first' &&
      echo '{"hookSpecificOutput": {"updatedToolOutput": {"file": {"content": "short"}}}}'
    exit ;;
  track-result) exit ;;
esac
printf '%s: ' "$2"
${SQUEEZ_SHELL:?} -c "$2" | head -n 1
"""
#: Rewrites `git` and `grep` to itself. Shows the first line of a command, and calls `rg` for grep.
REWRITER = r"""#!/bin/sh
case "$1" in
  rewrite) printf '%s' "$2" | sed -E 's/(^|&& )(git|grep)/\1fake \2/' ;;
  pipe) echo "$3" ;;
  grep) rg | head -n 1 ;;
  *) "$@" | head -n 1 ;;
esac
"""
TWO = "first\nsecond\n"


def bash(command: str) -> dict[str, object]:
    return {"name": "Bash", "arguments": {"command": command}}


class Programs(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, script in (("wrapper", WRAPPER), ("fake", REWRITER)):
            path = Path(folder.name) / name
            path.write_text(script)
            path.chmod(0o755)
        path = mock.patch.dict(os.environ, PATH=f"{folder.name}:{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)

    def shown(self, kind: type[Strategy], tool: list[str], *results: tuple) -> list[object]:
        """What enters for results, each with its call; None if it is the result itself."""
        with mock.patch.object(kind, "tool", tool):
            said = play(
                kind,
                initialize(),
                *(
                    (
                        "admit",
                        {
                            "id": f"m{n}",
                            "message": {"role": "tool", "tool_call_id": "c", "content": text},
                            "call": call,
                        },
                    )
                    for n, (call, text) in enumerate(results)
                ),
            )
        self.assertEqual(said[0]["moments"], ["admit"])
        return [s["message"]["content"] if s else None for s in said[1:]]

    def test_a_wrapper_runs_the_recorded_output(self) -> None:
        said = self.shown(Squeez, ["wrapper", "wrap"], (bash("rm -rf / | x; y"), TWO))
        self.assertEqual(said, ["rm -rf / | x; y: first"])
        self.assertEqual(self.shown(LeanCtx, ["wrapper", "-c"], (bash("ls"), TWO)), ["ls: first"])

    def test_other_tools_have_a_hook_and_images_stay(self) -> None:
        read = {"name": "Read", "arguments": {"file_path": "a"}}
        image = [{"type": "image_url", "image_url": {"url": "data:"}}]
        said = self.shown(
            Squeez, ["wrapper", "wrap"], (read, TWO), (bash("ls"), image), (None, TWO)
        )
        self.assertEqual(said, ["short", None, None])
        edit = {"name": "str_replace_editor", "arguments": {"command": "view", "path": "a"}}
        self.assertEqual(self.shown(Squeez, ["wrapper", "wrap"], (edit, TWO)), [None])

    def test_a_rewriter_runs_only_what_it_knows(self) -> None:
        said = self.shown(
            Tokf,
            ["fake"],
            (bash("git log"), TWO),
            (bash("cd /nowhere && git log -5 | tail -1"), TWO),
            (bash("make"), TWO),
            (bash("git log && git status"), TWO),
        )
        self.assertEqual(said, ["first", "first", None, None])

    def test_what_the_agent_adds_stays(self) -> None:
        started = {"name": "exec_command", "arguments": {"cmd": "git log"}}
        waited = {"name": "write_stdin", "arguments": {"session_id": 7}}
        report = "Chunk ID: 1\nWall time: 1 s\nProcess running with session ID 7\nOutput:\n"
        done = "Chunk ID: 2\nProcess exited with code 0\nOutput:\n"
        said = self.shown(
            Tokf,
            ["fake"],
            (bash("git log"), "Exit code 1\n" + TWO),
            (started, report),
            (waited, done + TWO),
        )
        self.assertEqual(said, ["Exit code 1\nfirst", None, done + "first"])

    def test_no_output_is_none(self) -> None:
        fake = ["fake", "echo", "ok"]
        said = self.shown(Squeez, fake, (bash("a"), "(no output)"), (bash("a"), "b\n"))
        self.assertEqual(said, ["ok a", "ok a"])

    def test_rtk_runs_only_what_was_recorded(self) -> None:
        matches = "a.py:1:x\na.py:2:y\n"
        said = self.shown(
            Rtk,
            ["fake"],
            (bash("git status"), TWO),
            (bash("git push"), TWO),
            (bash("git diff"), TWO),
            (bash("git diff --stat"), TWO),
            (bash("grep -n x"), matches),
            (bash("grep x"), TWO),
            (bash("git log"), TWO),
            (bash("git log --oneline"), TWO),
        )
        diff = ["git-diff", "first"]
        grep = ["a.py\x001:x", None]
        self.assertEqual(said, [None, "first", *diff, *grep, None, "first"])

    def test_which_program_printed_the_output(self) -> None:
        for command, name in {
            "git log": "git",
            "cd a && FORCE=1 ./bin/test -x 2>&1 | tail -5": "test",
            "grep 'a | b' c": "grep",
            "make; make test": None,
            "ls | wc -l": None,
            "cat a\ncat b": None,
            "echo 'open": None,
        }.items():
            self.assertEqual(only_program(command), name, command)


class Libraries(unittest.TestCase):
    def modules(self, **modules: types.SimpleNamespace) -> None:
        named = {name.replace("__", "."): module for name, module in modules.items()}
        patch = mock.patch.dict(sys.modules, named)  # type: ignore[arg-type]
        patch.start()
        self.addCleanup(patch.stop)
        home = mock.patch.dict(os.environ)
        home.start()
        self.addCleanup(home.stop)

    def shorten(self, kind: type) -> str | None:
        saver = kind()
        saver.session = types.SimpleNamespace(model=types.SimpleNamespace(id="m", window=9))
        saver.start(saver.session)
        return saver.shorten(Call("Read", {"file_path": "a"}), "result")

    def test_a_result_is_shown_with_its_call(self) -> None:
        def compress(messages, *options, protect_recent):
            self.assertEqual(messages[0]["tool_calls"][0]["function"]["name"], "Read")
            self.assertEqual((options, protect_recent), (("m", 9), 0))
            short = {**messages[1], "content": messages[1]["content"][:3]}
            return types.SimpleNamespace(messages=[messages[0], short])

        self.modules(headroom=types.SimpleNamespace(compress=compress))
        self.assertEqual(self.shorten(Headroom), "res")

    def test_entroly_has_a_store_of_its_own(self) -> None:
        def compress(body, retrieval_store):
            self.assertEqual(retrieval_store.name, "store")
            return types.SimpleNamespace(body={"messages": [None, {"content": "short"}]})

        self.modules(
            entroly=types.SimpleNamespace(),
            entroly__compression_proxy=types.SimpleNamespace(compress_proxy_payload=compress),
            entroly__compression_retrieval_store_secure=types.SimpleNamespace(
                CompressionRetrievalStore=lambda path: path
            ),
        )
        self.assertEqual(self.shorten(Entroly), "short")

    def test_a_proxy_changes_a_request_and_no_state(self) -> None:
        with mock.patch.multiple(
            KompactProxy,
            load=lambda self: None,
            compress=lambda self, ms: [{**m, "content": m["content"][:4]} for m in ms],
        ):
            said = play(
                KompactProxy,
                initialize(),
                context(("m1", user("long text")), ("m2", user("text"))),
            )
        self.assertEqual(said[0]["moments"], [])
        kept = [{"id": "m1", "message": user("long")}, "m2"]
        self.assertEqual(said[1], {"keep": kept, "scope": "request"})


if __name__ == "__main__":
    unittest.main()
