"""An agent of one's own that `ctxbench drive` can talk to: deepagents behind JSON lines.

It reads commands from standard input and answers on standard output, a JSON object per line, in
the form that docs/drive.md calls `rpc`. Only this file and `deepagents.toml` beside it are needed.
"""

import json
import os
import subprocess
import sys

from deepagents import create_deep_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


def tell(**message):
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
        # How large its window is; the middleware that summarises goes by it.
        profile={"max_input_tokens": int(os.environ["AGENT_WINDOW"])},
    )
    agent = create_deep_agent(model=model, tools=[run_shell])
    state = {"messages": []}
    for line in sys.stdin:
        command = json.loads(line)
        if command["type"] != "prompt":
            error = f"no command {command['type']}"
            tell(type="response", id=command["id"], success=False, error=error)
            continue
        tell(type="response", id=command["id"], success=True)
        said = {"role": "user", "content": command["message"]}
        try:
            # All of the state goes on: what was summarised stands beside the messages.
            turn = {**state, "messages": state["messages"] + [said]}
            state = agent.invoke(turn, {"recursion_limit": 1000})
        except Exception as error:  # whatever it is, the user reads it
            tell(type="message_end", message={"errorMessage": f"{type(error).__name__}: {error}"})
        tell(type="agent_settled")


if __name__ == "__main__":
    main()
