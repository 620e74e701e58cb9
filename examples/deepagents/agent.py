"""A deepagents agent for `ctxbench drive`.

It reads commands from standard input and answers on standard output, one JSON object per line, in
the protocol `rpc` of docs/drive.md. Only this file and `deepagents.toml` are needed.
"""

import json
import os
import subprocess
import sys

from deepagents import create_deep_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


def send(**message):
    print(json.dumps(message), flush=True)


@tool
def run_shell(command: str) -> str:
    """Runs a command in the project and returns what it prints."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def main():
    model = ChatOpenAI(
        model=os.environ["AGENT_MODEL"],
        base_url=os.environ["OPENAI_BASE_URL"],
        api_key="none",
        use_responses_api=False,
        max_tokens=int(os.environ["AGENT_MAX_OUTPUT"]),
        # Context window, which the summarisation middleware uses.
        profile={"max_input_tokens": int(os.environ["AGENT_WINDOW"])},
    )
    agent = create_deep_agent(model=model, tools=[run_shell])
    state = {"messages": []}
    for line in sys.stdin:
        command = json.loads(line)
        if command["type"] != "prompt":
            error = f"no command {command['type']}"
            send(type="response", id=command["id"], success=False, error=error)
            continue
        send(type="response", id=command["id"], success=True)
        message = {"role": "user", "content": command["message"]}
        try:
            # Keep the whole state: it contains the summary in addition to the messages.
            turn = {**state, "messages": state["messages"] + [message]}
            state = agent.invoke(turn, {"recursion_limit": 1000})
        except Exception as error:  # shown to the user
            send(type="message_end", message={"errorMessage": f"{type(error).__name__}: {error}"})
        send(type="agent_settled")


if __name__ == "__main__":
    main()
