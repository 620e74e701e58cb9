"""The check, against programs that keep the rules and programs that break one."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from ctxbench.check.__main__ import main

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"


def check(*args):
    """Exit code and what is printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(["--timeout", "20", *map(str, args)])
    return code, out.getvalue()


class Check(unittest.TestCase):
    def setUp(self):
        path = str(HERE.parent)
        os.environ["PYTHONPATH"] = path

    def good(self, *args):
        code, out = check(*args)
        self.assertEqual(code, 0, out)
        return out

    def bad(self, *args):
        code, out = check(*args)
        self.assertEqual(code, 1, out)
        return out

    def program(self, name):
        return f"{HERE / 'programs.py'}:{name}"

    def wild(self, **answers):
        """A program without the kit."""
        start = {"name": "w", "version": "1", "dialect": "openai-chat", "moments": []}
        answers = {"initialize": start, "context": {"unchanged": True}, **answers}
        return ["--", sys.executable, HERE / "programs.py", json.dumps(answers)]

    def test_examples(self):
        for example in sorted(EXAMPLES.glob("*.py")):
            self.good(example)

    def test_good_programs(self):
        self.good(self.program("unchanged"))
        self.assertIn("loud 7", self.good(self.program("loud")))
        out = self.good(self.program("Summarises"))
        self.assertRegex(out, r"[1-9]\d* compactions, [1-9]\d* questions")
        self.assertNotIn("when the model fails", out)
        self.good(*self.wild())

    def test_every_dialect(self):
        for dialect in ("openai-chat", "openai-responses", "anthropic"):
            start = {"name": "w", "version": "1", "dialect": dialect, "moments": ["rewind"]}
            self.good(*self.wild(initialize=start))

    def test_broken_strategies(self):
        for name, words in {
            "parts_a_pair": "without its result",
            "twice": "'m1' stands twice",
            "unknown_id": "'m999' does not stand",
            "raises": "IndexError: list index out of range (programs.py:",
            "changes_in_place": "read-only",
            "wrong_shape": "has no content",
            "Random": "differs in a second run",
        }.items():
            with self.subTest(name):
                self.assertIn(words, self.bad(self.program(name)))

    def test_broken_programs(self):
        start = {"name": "w", "version": "1", "dialect": "openai-chat"}
        for answers, words in [
            ({"initialize": {**start, "moments": ["lunch"]}}, "`moments` holds 'lunch'"),
            ({"initialize": {**start, "moments": [], "dialect": "x"}}, "`dialect` is 'x'"),
            ({"context": {}}, "has none of `keep`"),
            ({"context": {"keep": []}}, "is empty"),
            ({"context": {"keep": ["m1"], "unchanged": True}}, "only one of them"),
            ({"context": {"keep": [{"text": "x"}]}}, 'expected "id", {"id", "message"}'),
            ({"context": {"keep": ["m1", "m1"]}}, "names 'm1' twice"),
            ({"context": {"unchanged": True, "breakpoints": [{"id": "m0"}]}}, "names 'm0'"),
            ({"context": {"unchanged": True, "trigger": {"check": "x"}}}, "`trigger.believed`"),
            ({"context": {"unchanged": True, "params": {"temperature": 1}}}, "'temperature'"),
            ({"context": "good morning"}, "not JSON-RPC 2.0: good morning"),
            ({"shutdown": {"bye": 1}}, "expected {}"),
        ]:
            with self.subTest(words):
                self.assertIn(words, self.bad(*self.wild(**answers)))

    def test_nothing_is_asked_after_an_answer_that_ends_a_row(self):
        out = self.bad(self.program("parts_a_pair_with_a_text_of_its_own"))
        self.assertIn("without the call", out)
        self.assertEqual(out.count("wrong:"), 1, out)
        self.assertIn("a row would end, so nothing more was asked", out)

    def test_programs_that_are_none(self):
        self.assertIn("cannot be started", self.bad("--", "/nowhere/to/be/found", "x"))
        self.assertIn("not JSON-RPC 2.0: hi", self.bad("--", "echo", "hi"))
        self.assertIn("exit code 3", self.bad("--", sys.executable, "-c", "exit(3)"))

    def test_file_is_started_as_ctxbench_starts_it(self):
        text = "from ctxbench import strategy\n@strategy\ndef all(messages):\n    return messages\n"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mine.py"
            file.write_text(text)
            out = self.bad(file)
            self.assertIn("it ended before it answered", out)
            self.assertIn("does the file end with `NAME.run()`", out)
            file.write_text(text + "all.run()\n")
            self.good(file)

    def test_nothing_compacted_is_a_note(self):
        note = "nothing was compacted: the session is short; try smaller limits with --set"
        self.assertIn(note, self.good(self.program("unchanged")))
        self.assertNotIn(note, self.good(EXAMPLES / "keep_last.py"))

    def test_options_come_before_the_command(self):
        for late in (["--set", "keep=3"], ["--set=keep=3"], ["--timeout", "5"]):
            with self.subTest(late), contextlib.redirect_stderr(io.StringIO()) as err:
                with self.assertRaises(SystemExit) as exit:
                    main([str(EXAMPLES / "keep_last.py"), *late])
                self.assertEqual(exit.exception.code, 2)
                self.assertIn("options come before the command", err.getvalue())
        own = ["--", sys.executable, EXAMPLES / "keep_last.py", "--set"]
        self.assertIn("keep-last", self.good(*own))

    def test_reader_that_ends_early_is_no_error(self):
        command = [sys.executable, "-m", "ctxbench.check", self.program("unchanged")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as checking:
            checking.stdout.close()
            self.assertEqual(checking.stderr.read(), b"")

    def test_tools(self):
        # What ctxbench itself refuses or takes: harness/tests/cli/exec.rs.
        schema = {"type": "object", "required": ["n", "notes"]}
        schema["properties"] = {"n": {"type": "integer"}, "notes": {"type": "array"}}
        tool = {"name": "remember", "input_schema": schema}
        for tools, words in [
            ("all", "`tools` is all, expected true, false or a list of tools"),
            (tool, "expected true, false or a list of tools"),
            (["remember"], "`tools` holds remember, expected an object with `name`"),
            ([{"name": "remember"}], "without an object `input_schema`"),
            ([{**tool, "type": "function"}], "'remember' with the unknown field 'type'"),
            ([{**tool, "description": None}], "whose `description` is no text"),
            ([{**tool, "input_schema": {}}], "a required field of type string or array"),
            ([{**tool, "input_schema": {**schema, "required": ["n"]}}], "a required field of"),
        ]:
            with self.subTest(words):
                given = f"tools={json.dumps(tools)}"
                self.assertIn(words, self.bad("--set", given, self.program("WithTool")))
        self.good("--set", f"tools={json.dumps([tool])}", self.program("WithTool"))

    def test_settings(self):
        out = self.bad("--set", "kep=3", EXAMPLES / "keep_last.py")
        self.assertIn("no setting `kep`", out)
        self.good("--set", "keep=3", EXAMPLES / "keep_last.py")


if __name__ == "__main__":
    unittest.main()
