"""Tools that shorten tool output: `python3 -m ctxbench.adapters.token_savers TOOL`.

    ctxbench --filter 'rtk=exec:python3 -m ctxbench.adapters.token_savers rtk' login-bug

The installed tool runs unmodified, with an empty home folder for each conversation.

`rtk`, `tokf`, `squeez` and `lean-ctx` are programs that run the agent's shell commands. Here
programs that print the recorded output take the place of the shell, or of those that a command
names. `rtk` and `tokf` rewrite a command before it runs. The result of a command in which several
programs print something stays as it is, because their parts are unknown. `squeez` also has a hook
for results of other tools.

`headroom`, `entroly` and `kompact` are the libraries of proxies. They see the results of all
tools, each once, before it enters. `kompact-proxy` is a strategy: the library sees the whole
conversation before every request, as in its proxy.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench import Call, Context, Session, Strategy

#: Text of the agent before the output of a command: an exit code, or the report of Codex.
HEAD = re.compile(r"Exit code \d+\n|(?:.+\n){1,5}Output:\n(?:Total output lines: \d+\n\n?)?")
CODE = re.compile(r"(?:[Ee]xit code:?|exited with code) (\d+)")
NOTHING = re.compile(r"\(.*\bno output\)\s*")
RUNNING = re.compile(r"running with session ID (\d+)")
#: Tools that run a shell command.
SHELL = re.compile(r"bash|shell|exec|terminal|run_command", re.I)
#: Programs without output, and those that may cut an output twice without a difference.
SILENT, CUTS = {"cd", "export", "set", "true"}, {"head", "tail", "cat"}


class Saver(Strategy):
    """A tool that sees each result once, before it enters."""

    def admit(self, ctx: Context, message: dict[str, Any]) -> dict[str, Any] | None:
        text = message.get("content")
        if ctx.call is None or not isinstance(text, str):
            return None
        shorter = self.shorten(ctx.call, text)
        return None if shorter is None else {**message, "content": shorter}

    def shorten(self, call: Call, text: str) -> str | None:
        """The shortened result; None leaves it as it is."""
        raise NotImplementedError


def new_home() -> Path:
    """A folder that lasts as long as the program."""
    home = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return Path(home)


class Program(Saver):
    """A program that runs commands and shortens what they print."""

    #: Its command line; the command that the agent gave follows.
    tool: list[str] = []

    def start(self, session: Session) -> None:
        self.home = new_home()
        #: Commands that continue, by Codex' session.
        self.running: dict[str, str] = {}

    def shorten(self, call: Call, text: str) -> str | None:
        command = self.command(call)
        if command and (found := RUNNING.search(text)):
            self.running[found[1]] = command
            return None
        if not command:
            return None
        head = HEAD.match(text)
        output = text[head.end() :] if head else text
        code = CODE.search(text)
        recorded = "" if NOTHING.fullmatch(output) else output
        printed = self.printed(command, recorded, int(code[1]) if code else 0)
        if printed is None or printed == recorded:
            return None
        # The folder has another name in each run.
        return text[: len(text) - len(output)] + printed.replace(str(self.home), "~").rstrip("\n")

    def command(self, call: Call) -> str | None:
        """The shell command that a call runs, or that it waits for."""
        if not SHELL.search(call.name):
            return self.running.get(str(call.arguments.get("session_id")))
        given = call.arguments.get("command", call.arguments.get("cmd"))
        if isinstance(given, list):
            return given[-1] if given[1:2] in (["-c"], ["-lc"]) else shlex.join(given)
        return given

    def printed(self, command: str, output: str, code: int) -> str | None:
        """The output of the tool for a command that printed `output`."""
        raise NotImplementedError

    def replace(self, names: set[str], output: str, code: int) -> None:
        """Puts programs of these names that print `output` before all others."""
        folder = self.home / "bin"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        (self.home / "output").write_text(output)
        for name in names:
            script = folder / name
            script.write_text(f"#!/bin/sh\n/bin/cat {self.home}/output\nexit {code}\n")
            script.chmod(0o755)

    def run_tool(self, *command: str, stdin: str = "", stderr: int = subprocess.STDOUT) -> str:
        """The output of a command that finds the replaced programs."""
        shell = f"{self.home}/bin/sh"
        env = {
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:{os.environ['PATH']}",
            "SQUEEZ_SHELL": shell,
            "LEAN_CTX_SHELL": shell,
        }
        done = subprocess.run(
            command,
            input=stdin.encode(),
            env=env,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        return done.stdout.decode(errors="replace")


class Wrapper(Program):
    """A tool that runs a command in a shell."""

    def printed(self, command: str, output: str, code: int) -> str | None:
        self.replace({"sh", "bash"}, output, code)
        return self.run_tool(*self.tool, command)


class Squeez(Wrapper):
    """Its hooks for commands, and for the results of other tools of Claude Code."""

    tool = ["squeez", "wrap"]
    hooked = re.compile(
        r"Read|Grep|Glob|Monitor|Agent|Task|Edit|Write|Skill|Web(Fetch|Search)|ToolSearch"
        r"|TaskOutput|mcp__.*"
    )

    def shorten(self, call: Call, text: str) -> str | None:
        if not self.hooked.fullmatch(call.name):
            return super().shorten(call, text)
        told = {"tool_name": call.name, "tool_input": call.arguments}
        stdin = json.dumps({**told, "tool_response": {"content": text}})
        said = [
            self.run_tool(self.tool[0], hook, call.name, stdin=stdin, stderr=subprocess.DEVNULL)
            for hook in ("compress-output", "track-result")
        ]
        answer = json.loads(said[0] or "{}").get("hookSpecificOutput", {})
        shown = answer.get("updatedToolOutput")
        shorter: str | None = shown["file"]["content"] if isinstance(shown, dict) else shown
        return shorter


class LeanCtx(Wrapper):
    tool = ["lean-ctx", "-c"]


class Tokf(Program):
    """A tool that rewrites `cargo test` to `tokf run cargo test`, as its hook does."""

    tool = ["tokf"]
    #: Commands that it runs with other options, so that their output is not recorded.
    other = re.compile(r"\b(git status|docker (images|ps)|kubectl get|gh (pr|issue))\b")

    def printed(self, command: str, output: str, code: int) -> str | None:
        name = only_program(command)
        if name is None:
            return None
        self.replace(set(), "", 0)
        asked = [*self.tool, "rewrite", command]
        rewritten = self.run_tool(*asked, stderr=subprocess.DEVNULL).strip()
        if rewritten in ("", command) or self.other.search(rewritten):
            return None
        return self.rewrite(rewritten, name, output, code)

    def rewrite(self, rewritten: str, name: str, output: str, code: int) -> str | None:
        """The output of the rewritten command."""
        self.replace({name}, output, code)
        return self.run_tool("/bin/sh", "-c", f"cd() {{ :; }}\n{rewritten}")


class Rtk(Tokf):
    tool = ["rtk"]
    other = re.compile(
        r"\b(git (status|show|branch|stash|log(?!.*--(oneline|pretty|format)))|ls(?!.* -\w*l)"
        r"|read|vitest|jest|playwright|eslint|ruff|go test|pip|docker|kubectl|gh)\b"
    )

    def rewrite(self, rewritten: str, name: str, output: str, code: int) -> str | None:
        if name == "find" or re.search(r"\bgit diff\b(?!.*--\w*(stat|name))", rewritten):
            kind = name if name == "find" else "git-diff"
            return self.run_tool(*self.tool, "pipe", "--filter", kind, stdin=output)
        if name in ("grep", "rg"):
            # It asks for a zero byte after the name of the file, which it needs.
            lines = re.subn(r"^([^:\n]+):(\d+:)", "\\1\0\\2", output, flags=re.M)
            if lines[1] < 0.9 * len(output.splitlines()):
                return None
            name, output = "rg", lines[0]
        return super().rewrite(rewritten, name, output, code)


def only_program(command: str) -> str | None:
    """The program that printed the output of a command, if there is only one."""
    command = re.sub(r"\d?>&\d|&>", " ", command)
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;\n")
    lexer.whitespace, lexer.commenters = " \t", ""
    names: list[str] = []
    joint: str | None = ""
    try:
        for word in lexer:
            if set(word) <= set("|&;\n"):
                joint = word
            elif joint is not None and not re.match(r"\w+=", word):
                name = os.path.basename(word)
                if name not in SILENT and not (joint == "|" and name in CUTS):
                    names.append(name)
                joint = None
    except ValueError:
        return None
    return names[0] if len(names) == 1 else None


class Library(Saver):
    """A library that shortens results in a list of Chat Completions messages."""

    distribution = ""

    def start(self, session: Session) -> None:
        self.home = new_home()
        os.environ["HOME"] = str(self.home)
        self.load()

    def shorten(self, call: Call, text: str) -> str | None:
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        called = {"id": "call", "type": "function", "function": function}
        asked = {"role": "assistant", "content": "", "tool_calls": [called]}
        result = {"role": "tool", "tool_call_id": "call", "content": text}
        shorter: str = self.compress([asked, result])[1]["content"]
        return shorter

    def load(self) -> None:
        """Imports the library."""
        raise NotImplementedError

    def compress(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        raise NotImplementedError


class Headroom(Library):
    """`compress(…)`; its text model (Kompress) is used if it is installed."""

    distribution = "headroom-ai"

    def load(self) -> None:
        from headroom import compress

        self._compress = compress

    def compress(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        model = self.session.model
        # By default the newest four messages stay as they are, which here are all.
        done = self._compress(messages, model.id, model.window, protect_recent=0)
        return list(done.messages)


class Entroly(Library):
    """The default of its proxy for tool output, each result separately."""

    distribution = "entroly"

    def load(self) -> None:
        from entroly.compression_proxy import compress_proxy_payload
        from entroly.compression_retrieval_store_secure import CompressionRetrievalStore

        self._compress = compress_proxy_payload
        self._store = CompressionRetrievalStore(self.home / "store")

    def compress(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        done = self._compress({"messages": messages}, retrieval_store=self._store)
        return list(done.body["messages"])


class Kompact(Library):
    """The pipeline of its proxy."""

    distribution = "kompact"

    def load(self) -> None:
        from kompact.config import KompactConfig
        from kompact.parser import messages as parser
        from kompact.transforms import pipeline
        from kompact.types import Provider

        self._parser, self._pipeline = parser, pipeline
        self._provider, self._config = Provider.OPENAI, KompactConfig()

    def compress(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        request = self._parser.parse_request({"messages": messages}, self._provider)
        done = self._pipeline.run(request, self._config)
        return list(self._parser.serialize_request(done.request)["messages"])


class KompactProxy(Kompact):
    """The pipeline on the whole conversation before every request, as in its proxy."""

    scope = "request"
    # A strategy, which sees results in the conversation.
    admit = Strategy.admit

    def context(self, ctx: Context) -> list[dict[str, Any]]:
        system = {"role": "system", "content": ctx.session.system}
        shown = self.compress([system, *ctx.messages])[1:]
        return [
            old if new.get("content") == old.get("content") else {**old, "content": new["content"]}
            for old, new in zip(ctx.messages, shown, strict=True)
        ]


TOOLS: dict[str, type[Strategy]] = {
    "rtk": Rtk,
    "tokf": Tokf,
    "squeez": Squeez,
    "lean-ctx": LeanCtx,
    "headroom": Headroom,
    "entroly": Entroly,
    "kompact": Kompact,
    "kompact-proxy": KompactProxy,
}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in TOOLS:
        names = "|".join(TOOLS)
        sys.exit(f"usage: python3 -m ctxbench.adapters.token_savers {names}")
    kind = TOOLS[sys.argv[1]]
    kind.name = sys.argv[1]
    if issubclass(kind, Program):
        said = subprocess.run([kind.tool[0], "--version"], stdout=subprocess.PIPE, text=True).stdout
        kind.version = (re.findall(r"\d[\w.]*", said) or ["?"])[0]
    elif issubclass(kind, Library):
        kind.version = version(kind.distribution)
    kind.run()


if __name__ == "__main__":
    main()
