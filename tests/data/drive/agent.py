"""A coding agent that behaves as a word says, for the tests of `ctxbench drive`.

python3 agent.py HOW URL DELIVER FOLDER [--text=TEXT] [-- TEXT]

HOW      what it does (see `Agent.turn`); `good` = an agent as one would wish
URL      where its model is
DELIVER  how it is spoken to: acp, exec, rpc, lines
FOLDER   where it leaves what the tests look for: `pids`, `url`, `window`, `argv`
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

HOW, URL, DELIVER, FOLDER = sys.argv[1:5]
WINDOW_FULL = "x y " * 200_000
OWN_WORDS = "The secret prompt of the fake agent"
LONG = 500 if HOW == "reminds" else 0


def note(name, text):
    with open(os.path.join(FOLDER, name), "a", encoding="utf-8") as f:
        f.write(f"{text}\n")


def out(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def part(text, kind="input_text"):
    return {"type": kind, "text": text}


def message(role, *texts):
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [part(t, kind) for t in texts]}


class Refused(Exception):
    pass


class Agent:
    """Keeps its history as Codex does, and compacts when it is told to."""

    def __init__(self):
        self.items = self.context()
        self.said = []
        self.turns = 0

    def context(self):
        return [
            message("developer", f"{OWN_WORDS}: permissions.", f"{OWN_WORDS}: tools."),
            message("user", f"{OWN_WORDS}: the environment{' is large' * LONG}."),
        ]

    def post(self, items, tools, phase=None, model="gpt-5.5", alone=False):
        label = {"compaction": {"phase": phase}} if phase else {}
        base = [] if alone else [message("developer", f"{OWN_WORDS}: be good.")]
        body = {"model": model, "stream": False, "input": base + items}
        body["client_metadata"] = {"x-codex-turn-metadata": json.dumps(label)}
        if tools:
            names = ["exec_command"] + (["done"] if HOW == "ends-by-call" else [])
            body["tools"] = [
                {"type": "function", "name": name, "parameters": {"type": "object"}}
                for name in names
            ]
        asked = urllib.request.Request(
            f"{URL}/v1/responses",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(asked) as answer:
                return json.load(answer)["output"]
        except urllib.error.HTTPError as e:
            raise Refused(f"{e.code} {e.read().decode()}") from e

    def work(self):
        """Asks until no tool is called any more."""
        while True:
            reply = self.post(self.items, True)
            while HOW == "repeats":
                self.post(self.items, True)
            while HOW == "sums-up-for-ever":
                self.compact()
            self.items += [{k: v for k, v in i.items() if k != "id"} for i in reply]
            calls = [i for i in reply if i["type"] == "function_call"]
            if HOW == "ends-by-call" and calls and calls[0]["name"] == "done":
                self.items.append(
                    {"type": "function_call_output", "call_id": calls[0]["call_id"], "output": ""}
                )
                return
            if not calls and HOW not in ("endless", "ends-by-call"):
                return
            for call in calls:
                self.items.append(self.run(call))
            if not calls:
                self.items.append(message("user", f"again {len(self.items)}"))

    def run(self, call):
        command = json.loads(call["arguments"])["cmd"]
        note("commands", json.dumps(command))
        got = subprocess.run(command, shell=True, capture_output=True, check=False).stdout
        text = got.decode("utf-8", "replace")
        # What an agent puts around an output is another every time.
        mark = os.urandom(3).hex() if HOW == "wraps" else "a1b2c3"
        text = f"Chunk ID: {mark}\nOutput of its own:\n{text}"
        if HOW == "reminds":
            # As Claude Code after a compaction: the context moves behind a result.
            environment = self.context()[1]
            self.items.remove(environment)
            text += "\n" + environment["content"][0]["text"]
        return {"type": "function_call_output", "call_id": call["call_id"], "output": text}

    def at_once(self, count):
        """Asks for names all at once, as streams, and reads each to its end."""

        def ask(number):
            words = f"a name for note {number}"
            body = {"model": "gpt-5.5", "stream": True, "input": [message("user", words)]}
            asked = urllib.request.Request(f"{URL}/v1/responses", json.dumps(body).encode())
            with urllib.request.urlopen(asked) as answer:
                events = answer.read().decode().split("\n\n")
            done = [e for e in events if e.startswith("event: response.completed")]
            assert len(done) == 1 and not events[-1], events[-2:]

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def calls_out(self):
        """Connects to a server of the test, and from a namespace to an address outside."""
        with open("/proc/net/dev", encoding="ascii") as f:
            interfaces = [line.split(":")[0].strip() for line in f.readlines()[2:]]
        note("interfaces", " ".join(interfaces))
        with open(os.path.join(FOLDER, "port"), encoding="ascii") as f:
            addresses = [("127.0.0.1", int(f.read()))]
        if interfaces == ["lo"]:
            addresses.append(("192.0.2.1", 80))  # An address for documentation.
        for address in addresses:
            try:
                socket.create_connection(address, 5).close()
                note("calls", "connected")
            except OSError as e:
                note("calls", e.strerror)

    def never_minds(self):
        """Asks for a model that is not there, whatever the answer."""
        self.items.append(message("user", "whose model is it?"))
        while True:
            try:
                self.post(self.items, True, model="nobody's")
            except (Refused, OSError):
                pass

    def compact(self):
        asks = message("user", f"{OWN_WORDS}: write a note for whoever goes on.")
        if HOW in ("one-message", "scrambles"):
            asks = message("user", self.in_one_message())
            reply = self.post([asks], False, "standalone_turn", alone=True)
        else:
            if HOW == "untags":
                asks["content"][0]["text"] += " Put it between <summary> and </summary>."
            reply = self.post(self.items + [asks], False, "standalone_turn")
        texts = [p["text"] for i in reply if i["type"] == "message" for p in i["content"]]
        if HOW == "untags":
            texts = [texts[-1].split("<summary>")[1].split("</summary>")[0].strip()]
        if HOW == "forgets-nothing":
            return
        users = [message("user", t) for t in self.said]
        note = message("user", f"{OWN_WORDS}: what came before:\n{texts[-1]}")
        # Its context stands before the last words of the user.
        self.items = users[:-1] + self.context() + users[-1:] + [note]

    def in_one_message(self):
        """The conversation in a form of its own, which may be one that nobody can read."""
        parts = []
        for number, item in enumerate(self.items):
            text = item.get("output") or item.get("arguments") or item["content"][0]["text"]
            if HOW == "scrambles":
                text = text[::-1]
            parts.append(f"@@ entry {number} by {item.get('role', 'tool')} @@ {text}")
        return f"{OWN_WORDS}: shorten this.\n" + "\n".join(parts)

    def turn(self, words):
        self.turns += 1
        if words.startswith("/compact"):
            self.compact()
            return
        if HOW == "hangs":
            self.post([message("user", words)], True)
            signal.pause()
        if HOW == "crashes" and self.turns == 2:
            sys.stderr.write("it broke \x1b[31min red\x1b[0m\n")
            os._exit(3)
        if HOW == "mute":
            os._exit(0)
        if HOW == "floods":
            for _ in range(1 << 14):
                out("flood " * 11_000)
        if HOW == "floods-lines":
            for _ in range(1 << 14):
                out(("flood " * 11_000) + "\n")
        if HOW == "chatters":
            line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": "x" * 65536})
            while True:
                out(line + "\n")
        if HOW == "floods-stderr":
            for _ in range(1 << 14):
                sys.stderr.write("flood " * 11_000)
        if HOW == "garbage":
            sys.stdout.buffer.write(b"\xff\xfe\x00{]\n" * 1_000_000)
        if HOW == "ignores-window":
            self.items.append(message("user", WINDOW_FULL))
        if HOW in ("SIGTERM", "SIGINT", "SIGHUP"):
            leave_child()
            self.post([message("user", words)], True)
            os.kill(os.getppid(), getattr(signal, HOW))
            signal.pause()
        if HOW == "SIGKILL":
            # The lock shows that it lives. After 20 s it gives up.
            alive = open(os.path.join(FOLDER, "alive"), "w")
            fcntl.flock(alive, fcntl.LOCK_EX)
            signal.signal(signal.SIGALRM, lambda *_: note("survived", "20 s"))
            signal.alarm(20)
            os.kill(os.getppid(), signal.SIGKILL)
            signal.pause()
            os._exit(0)
        if HOW == "calls-out" and self.turns == 1:
            self.calls_out()
        if HOW == "at-once":
            self.at_once(200)
        if HOW == "misnames":
            self.post([message("user", words)], True, model="nobody's")
        if HOW == "never-minds":
            self.never_minds()
        if HOW == "aside":
            self.post(self.items + [message("user", f"{OWN_WORDS}: name it.")], True)
        if HOW == "reminds":
            self.items.append(message("user", f"{OWN_WORDS}: enough{' is left' * LONG}."))
        self.said.append(words)
        self.items.append(message("user", words))
        self.work()


def leave_child():
    """Starts a process in the agent's group that keeps its standard output open."""
    if os.fork() == 0:
        note("pids", os.getpid())
        while True:
            time.sleep(3600)


def acp(agent):
    for line in sys.stdin:
        asked = json.loads(line)
        answer, id = {}, asked.get("id")
        if asked["method"] == "session/new":
            answer = {"sessionId": "s"}
        if asked["method"] == "session/prompt":
            try:
                agent.turn(asked["params"]["prompt"][0]["text"])
            except Refused as e:
                error = {"code": 1, "message": str(e)}
                out(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}) + "\n")
                continue
            answer = {"stopReason": "end_turn"}
        out(json.dumps({"jsonrpc": "2.0", "id": id, "result": answer}) + "\n")


def rpc(agent):
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["type"] == "prompt":
            out(json.dumps({"type": "response", "id": asked["id"], "success": True}) + "\n")
            agent.turn(asked["message"])
            out(json.dumps({"type": "agent_settled"}) + "\n")
        else:
            agent.compact()
            out(json.dumps({"type": "response", "id": asked["id"], "success": True}) + "\n")


def lines(agent):
    out("ready> ")
    for line in sys.stdin:
        agent.turn(line.rstrip("\n"))
        out("done\nready> ")


def once(agent):
    """A turn; what is to be remembered stands in its home."""
    state = os.path.join(os.environ["HOME"], "state.json")
    if os.path.exists(state):
        with open(state, encoding="utf-8") as f:
            agent.items, agent.said, agent.turns = json.load(f)
    arguments = sys.argv[5:]
    note("argv", json.dumps(arguments))
    texts = [a.removeprefix("--text=") for a in arguments if a.startswith("--text=")]
    if "--" in arguments:
        texts = arguments[arguments.index("--") + 1 :]
    out("session id: fake-7\n")
    if HOW == "fails-aloud":
        out("the account is empty\n")
        sys.exit(4)
    try:
        agent.turn(texts[0] if texts else sys.stdin.read())
    except Refused as e:
        sys.exit(str(e))
    with open(state, "w", encoding="utf-8") as f:
        json.dump([agent.items, agent.said, agent.turns], f)


note("pids", os.getpid())
note("url", URL)
note("window", os.environ.get("TOLD_WINDOW", ""))
{"acp": acp, "exec": once, "rpc": rpc, "lines": lines}[DELIVER](Agent())
