"""A filter of tool results: `same` leaves them, `short` keeps their first 40 characters, `crash` ends."""

import json
import sys

how = sys.argv[1]
for line in sys.stdin:
    call = json.loads(line)
    method, result = call["method"], {}
    assert method in ("initialize", "admit", "shutdown"), method
    if method == "initialize":
        result = {"name": how, "version": "7", "dialect": "openai-chat", "moments": ["admit"]}
    elif method == "admit":
        if how == "crash":
            sys.exit("the filter is blocked")
        answered, message = call["params"]["call"], call["params"]["message"]
        assert answered["name"] and isinstance(answered["arguments"], dict), answered
        if how == "short":
            result = {"message": {**message, "content": message["content"][:40]}}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
    if method == "shutdown":
        break
