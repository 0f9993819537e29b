"""A model of Claude Code on loopback, which answers from a script.

    scripted_model.py SCRIPT LOG COMMAND…

Runs the command with ANTHROPIC_BASE_URL, and exits with its code. SCRIPT is a JSON list of
answers: `text`, and optionally `command` for the Bash tool. Each request takes the next answer,
except those that offer no tools: an agent names its session with such a request. After the last
answer the model fails each request, which ends the agent's turn. LOG gets a line for each request.
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

USAGE = {"input_tokens": 100, "output_tokens": 10,
         "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
CHORE = {"text": "scripted"}


class Model(ThreadingHTTPServer):
    """Hands out each answer of the script once."""

    daemon_threads = True

    def __init__(self, answers: list[dict], log: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.log = log
        self.taken = 0
        self.count = 0
        self.lock = threading.Lock()

    def answer(self, body: dict) -> tuple[int, dict | None]:
        """Returns the number of the request, and its answer or None after the last one."""
        with self.lock:
            self.count += 1
            if not body.get("tools"):
                given = CHORE
            else:
                given = dict(enumerate(self.answers)).get(self.taken)
                self.taken += 1
            with self.log.open("a") as log:
                log.write(json.dumps({"request": self.count, "answer": given, "body": body}) + "\n")
            return self.count, given


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_json(200, {"data": []})

    do_HEAD = do_GET

    def do_POST(self):
        path = urlsplit(self.path).path
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        if path.endswith("/count_tokens"):
            self.send_json(200, {"input_tokens": USAGE["input_tokens"]})
        elif not path.endswith("/messages"):
            self.send_error_json(404, "not_found_error", f"no such API: {path}")
        else:
            number, given = self.server.answer(body)
            if given is None:
                self.send_error_json(400, "invalid_request_error", "The model gave up.")
            elif body.get("stream"):
                self.send_events(events(message(given, body, number)))
            else:
                self.send_json(200, message(given, body, number))

    def send_error_json(self, status: int, kind: str, text: str) -> None:
        self.send_json(status, {"type": "error", "error": {"type": kind, "message": text}})

    def send_json(self, status: int, data: dict) -> None:
        raw = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def send_events(self, sent: list[dict]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in sent:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


def message(given: dict, body: dict, number: int) -> dict:
    """Returns a whole answer of the Messages API."""
    content = [{"type": "text", "text": given["text"]}]
    if "command" in given:
        content.append({"type": "tool_use", "id": f"toolu_{number}", "name": "Bash",
                        "input": {"command": given["command"], "description": "Do the work"}})
    return {"id": f"msg_{number}", "type": "message", "role": "assistant",
            "model": body.get("model"), "content": content, "stop_sequence": None,
            "stop_reason": "tool_use" if "command" in given else "end_turn", "usage": USAGE}


def events(whole: dict) -> list[dict]:
    """Returns the answer as a stream of events."""
    sent = [{"type": "message_start",
             "message": whole | {"content": [], "stop_reason": None}}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            start = block | {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            start = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        sent += [{"type": "content_block_start", "index": index, "content_block": start},
                 {"type": "content_block_delta", "index": index, "delta": delta},
                 {"type": "content_block_stop", "index": index}]
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return [*sent, {"type": "message_delta", "delta": end, "usage": whole["usage"]},
            {"type": "message_stop"}]


def main() -> int:
    script, log, *command = sys.argv[1:]
    model = Model(json.loads(Path(script).read_text()), Path(log))
    threading.Thread(target=model.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{model.server_address[1]}"
    return subprocess.run(command, env=os.environ | {"ANTHROPIC_BASE_URL": url}).returncode


if __name__ == "__main__":
    sys.exit(main())
