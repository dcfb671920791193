"""A judge of known habits behind a real HTTP server: bias, noise, refusals, delays, 429, broken JSON."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Script:
    """How the judge behaves. `say` overrules everything with one text."""

    model: str = "scripted-1"
    prefers: Callable[[str], float] = len
    """A score of an output's text; the higher one wins."""
    first: float = 0.0
    """The chance of choosing the first, whatever it says."""
    noise: float = 0.0
    refuses: float = 0.0
    broken: float = 0.0
    busy: int = 0
    """So many requests are answered 429 before the others."""
    retry_after: str = "0"
    schemas: bool = True
    say: str | None = None
    slow: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)


class ScriptedServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.rng = random.Random(0)
        self.lock = threading.Lock()
        self.wake = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that gave up

    def stop(self) -> None:
        self.wake.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script, rng = self.server.script, self.server.rng
        with self.server.lock:
            script.requests.append(body)
            if script.busy > 0:
                script.busy -= 1
                self._send(429, {"error": {"message": "busy"}}, {"Retry-After": script.retry_after})
                return
            if not script.schemas and "response_format" in body:
                self._send(400, {"error": {"message": "response_format is not known"}})
                return
            draw = rng.random()
        if script.slow:
            self.server.wake.wait(script.slow)
        if draw < script.refuses:
            message: dict[str, Any] = {"content": None, "refusal": "I cannot judge that."}
        elif draw < script.refuses + script.broken:
            message = {"content": '{"better": '}
        else:
            message = {"content": script.say or self._answer(body)}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        self._send(200, {"model": script.model, "choices": [{"message": message}], "usage": usage})

    def _answer(self, body: dict[str, Any]) -> str:
        script, rng = self.server.script, self.server.rng
        text = body["messages"][0]["content"]
        outputs = re.findall(r"Output(?: [A-Z])?:\n<(\w+)>\n(.*?)\n</\1>", text, re.DOTALL)
        scores = [script.prefers(said) + rng.gauss(0, 1) * script.noise for _, said in outputs]
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        names = list(schema["properties"]) if schema else re.findall(r'"([^"]+)": …', text)
        answers: dict[str, Any] = {}
        for place, name in enumerate(names):
            if '"A", "B"' in text or '"A" or "B"' in text:
                first = rng.random() < script.first or scores[0] > scores[1]
                answers[name] = "A" if first else "B"
            else:
                answers[name] = min(6, max(1, round(scores[place % len(scores)])))
        return json.dumps(answers)

    def _send(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
