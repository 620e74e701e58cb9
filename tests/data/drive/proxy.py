"""A proxy that shortens the results of tools, for the tests of `ctxbench drive`.

python3 proxy.py PORT UPSTREAM [crash]
"""

import http.server
import json
import sys
import urllib.request

PORT, UPSTREAM = int(sys.argv[1]), sys.argv[2]
CRASHES = sys.argv[3:] == ["crash"]


class Proxy(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        for item in body["input"]:
            if item.get("type") == "function_call_output":
                item["output"] = item["output"][:60]
        asked = urllib.request.Request(
            UPSTREAM + self.path,
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(asked) as answer:
            text = answer.read()
        print("served", self.path)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


if CRASHES:
    sys.exit("the cellar is flooded")
http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Proxy).serve_forever()
