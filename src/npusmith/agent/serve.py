"""`npusmith serve-model`: a small server of OpenAI's chat protocol, for tests and checkpoints.

It listens on this machine only, answers /v1/models and /v1/chat/completions, streaming or not, and
keeps nothing. A script's faults are played as a broken endpoint would: see agent/scripted.py.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import ValidationError

from npusmith.agent.scripted import Fault, Rule, Script, answer
from npusmith.agent.talk import Answer, Message, Model, Request
from npusmith.errors import NpusmithError

HOST = "127.0.0.1"
_MOST_BYTES = 16 << 20  # of a request
_PIECE = 400  # characters of an event


class ModelServer(ThreadingHTTPServer):
    """`ModelServer(model, script, port)`; `serve_forever()` until `shutdown()`."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, model: Model, script: Script | None = None, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.model, self.script = model, script
        self.asked = 0
        self._faults: Counter[int] = Counter()
        self._lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no defect of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/v1"

    def next_rule(self, request: Request) -> tuple[Rule | None, Fault | None]:
        """The script's rule, and its fault as long as that has turns left."""
        with self._lock:
            self.asked += 1
            if self.script is None:
                return None, None
            rule = self.script.rule(request)
            if rule.fault is None:
                return rule, None
            at = next((i for i, item in enumerate(self.script.rules) if item is rule), -1)
            self._faults[at] += 1
            return rule, rule.fault if self._faults[at] <= rule.fault.times else None


@contextmanager
def open_server(model: Model, script: Script | None, port: int) -> Iterator[ModelServer]:
    """A server that listens; raises serve-port."""
    try:
        server = ModelServer(model, script, port)
    except OSError as error:
        message = f"port {port} cannot be used: {error.strerror}"
        raise NpusmithError("serve-port", message, seen=str(port)) from error
    with server:
        yield server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: prompts are nobody's business."""

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            name = self.server.model.name
            self._json(200, {"object": "list", "data": [{"id": name, "object": "model"}]})
        else:
            self._json(404, _error("there is no such page"))

    def do_POST(self) -> None:
        if not self.path.rstrip("/").endswith("/chat/completions"):
            self._json(404, _error("there is no such page"))
            return
        try:
            body = self._body()
            request = _request(body)
        except (ValueError, TypeError, ValidationError) as error:
            self._json(400, _error(f"the request cannot be read: {error}"[:500]))
            return
        rule, fault = self.server.next_rule(request)
        if fault is not None and self._play(fault):
            return
        try:
            said = self.server.model.ask(request) if rule is None else answer(
                rule, request, self.server.model.name
            )  # fmt: skip
        except NpusmithError as error:
            self._json(400 if error.code == "model-context" else 500, _error(error.message))
            return
        except Exception as error:  # of a checkpoint's own code: this call's, not the server's
            self._json(500, _error(f"{type(error).__name__}: {error}"[:500]))
            return
        self._send(said, bool(body.get("stream")))

    def _body(self) -> dict[str, Any]:
        size = int(self.headers.get("Content-Length", "0"))
        if not 0 < size <= _MOST_BYTES:
            raise ValueError(f"a body of {size} bytes")
        data = json.loads(self.rfile.read(size))
        if not isinstance(data, dict):
            raise ValueError("not an object")
        return data

    # ---- answers

    def _send(self, said: Answer, stream: bool) -> None:
        usage = {
            "prompt_tokens": said.usage.prompt,
            "completion_tokens": said.usage.completion,
            "total_tokens": said.usage.total,
        }
        if not stream:
            message = {"role": "assistant", "content": said.text}
            choice = {"index": 0, "message": message, "finish_reason": said.finish}
            head = {"object": "chat.completion", "model": said.model}
            self._json(200, {**head, "choices": [choice], "usage": usage})
            return
        self._start_events()
        for piece in _pieces(said.text):
            self._event(_delta({"content": piece}, said.model))
        last = _delta({}, said.model, said.finish) | {"usage": usage}
        self._event(last)
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _start_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, data: dict[str, Any]) -> None:
        self._chunk(b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(
        self, status: int, data: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        body = json.dumps(data, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    # ---- faults

    def _play(self, fault: Fault) -> bool:
        """Misbehaves; False where the real answer follows."""
        name = self.server.model.name
        match fault.kind:
            case "slow":
                time.sleep(fault.seconds)
                return False
            case "status":
                extra = {"Retry-After": fault.retry_after} if fault.retry_after else {}
                self._json(fault.status, _error("as the script says"), extra)
            case "down":
                self.close_connection = True  # without a word
            case "empty":
                self._start_events()
                self._event(_delta({}, name, "stop"))
                self._chunk(b"data: [DONE]\n\n")
                self._chunk(b"")
            case "cut":
                self._start_events()
                self._event(_delta({"content": "```python\nTILE = 4096\n"}, name))
                self.wfile.flush()
                self.close_connection = True
            case "garbled":
                self._start_events()
                self._chunk(b'data: {"choices": [{"delta": {"content": "\xff\xfe\xc3("}}]}\n\n')
                self._chunk(b"")
            case "long":
                self._start_events()
                for _ in range(max(1, fault.size // 100)):
                    self._event(_delta({"content": "word " * 100}, name))
                self._event(_delta({}, name, "length"))
                self._chunk(b"data: [DONE]\n\n")
                self._chunk(b"")
        return True


def _request(body: dict[str, Any]) -> Request:
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise ValueError("no list of messages")
    return Request(
        messages=tuple(
            Message(role=item["role"], content=_content(item.get("content"))) for item in messages
        ),
        seed=int(body.get("seed") or 0),
        temperature=float(body.get("temperature") or 0.0),
        max_tokens=int(body.get("max_tokens") or body.get("max_completion_tokens") or 8192),
    )


def _content(value: Any) -> str:
    """Text, also in the form of a list of parts."""
    if isinstance(value, list):
        return "".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    return str(value or "")


def _delta(delta: dict[str, str], model: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "model": model, "choices": [choice]}


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "npusmith"}}
