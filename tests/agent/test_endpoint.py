"""The client against real servers: our own as a process of its own, with the faults of others."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from agentcases import ask

from npusmith.agent.endpoint import Endpoint, Settings
from npusmith.agent.stream import read_events, read_whole
from npusmith.errors import NpusmithError

FAULTS = {
    "busy": {"kind": "status", "status": 503},
    "refused": {"kind": "status", "status": 404},
    "slow": {"kind": "slow", "seconds": 3},
    "cut": {"kind": "cut"},
    "empty": {"kind": "empty"},
    "garbled": {"kind": "garbled"},
    "long": {"kind": "long", "size": 1_000_000},
    "away": {"kind": "down"},
}
RULES: list[dict[str, Any]] = [
    *({"contains": [f"do: {word}"], "fault": fault} for word, fault in FAULTS.items()),
    {
        "contains": ["do: later"],
        "fault": {"kind": "status", "status": 429, "retry_after": "7", "times": 2},
        "replies": ["at last"],
    },
    {"contains": ["do: twice"], "fault": {"kind": "cut", "times": 1}, "replies": ["whole"]},
    {"replies": ["Grüße \u2713", "second"]},
]


class Pauses(list[float]):
    """Takes the place of sleeping, and keeps what was asked for."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def client(url: str, sleep: Callable[[float], None], **more: Any) -> Endpoint:
    return Endpoint(Settings(model="m", url=url, **{"attempts": 3, **more}), sleep)


def test_a_real_server_answers_and_its_faults_have_codes(serve) -> None:  # type: ignore[no-untyped-def]
    url = serve(RULES)
    pauses = Pauses()
    model = client(url, pauses, silence=1.0)

    answer = model.ask(ask("write"))
    assert (answer.text, answer.finish) == ("Grüße \u2713", "stop")
    assert answer.usage.total > 0 and not answer.usage.estimated
    assert model.ask(ask("write", seed=1)).text == "second"

    wanted = {
        "busy": "model-busy", "refused": "model-refused", "slow": "model-slow", "cut": "model-cut",
        "empty": "model-empty", "garbled": "model-garbled", "long": "model-long",
        "away": "model-cut",
    }  # fmt: skip
    for word, code in wanted.items():
        with pytest.raises(NpusmithError) as caught:
            model.ask(ask(f"do: {word}"))
        assert caught.value.code == code, word

    pauses.clear()
    assert model.ask(ask("do: later")).text == "at last"
    assert pauses == [7.0, 7.0]  # what Retry-After names
    assert model.ask(ask("do: twice")).text == "whole"

    plain = httpx.post(
        f"{url}/chat/completions", json={"messages": [{"role": "user", "content": "x"}]}
    )
    assert plain.json()["choices"][0]["message"]["content"] == "Grüße \u2713"
    assert httpx.get(f"{url}/models").json()["data"][0]["id"] == "scripted"
    assert httpx.post(f"{url}/chat/completions", content=b"{").status_code == 400
    assert httpx.get(f"{url}/nothing").status_code == 404


def test_nothing_at_the_address_is_model_down_after_pauses_that_double() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pauses = Pauses()
    with pytest.raises(NpusmithError) as caught:
        client(f"http://127.0.0.1:{port}/v1", pauses, attempts=4).ask(ask())
    assert caught.value.code == "model-down"
    assert pauses == [0.5, 1.0, 2.0]


class Server:
    """A server of the test's own; `play(handler, body, turn)` answers."""

    def __init__(self, play: Callable[[BaseHTTPRequestHandler, dict[str, Any], int], None]) -> None:
        self.turns = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                return

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(size))
                outer.turns += 1
                play(self, body, outer.turns)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


def send(handler: BaseHTTPRequestHandler, status: int, data: dict[str, Any]) -> None:
    body = json.dumps(data).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def test_a_key_is_sent_and_is_blotted_out_of_all_that_comes_back(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("MY_KEY", "sk-very-secret-1")

    def play(handler: BaseHTTPRequestHandler, body: dict[str, Any], turn: int) -> None:
        key = str(handler.headers["Authorization"])
        if turn == 1:
            send(handler, 200, said(f"you sent {key}"))
        else:
            send(handler, 401, {"error": {"message": f"wrong key {key}"}})

    server = Server(play)
    model = client(server.url, Pauses(), key_name="MY_KEY")
    assert model.ask(ask()).text == "you sent Bearer ***"
    with pytest.raises(NpusmithError) as caught:
        model.ask(ask())
    assert caught.value.code == "model-key"
    assert "sk-very-secret-1" not in caught.value.render()
    assert caught.value.seen == "MY_KEY is set"


@pytest.mark.parametrize("place", ["model", "finish", "error"])
def test_no_field_of_an_answer_brings_the_key_back(monkeypatch, place: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("MY_KEY", "sk-very-secret-1")

    def play(handler: BaseHTTPRequestHandler, body: dict[str, Any], turn: int) -> None:
        key = "sk-very-secret-1"
        choice = {"message": {"content": "ok"}, "finish_reason": key if place == "finish" else ""}
        error = {"error": "x" * 290 + key} if place == "error" else {}  # cut in its middle
        send(handler, 200, {"choices": [choice], "model": key, **error})

    model = client(Server(play).url, Pauses(), key_name="MY_KEY", attempts=1)
    try:
        said = model.ask(ask()).model_dump_json()
    except NpusmithError as error:
        said = error.render()
    assert "secret" not in said and "sk-very" not in said


@pytest.mark.parametrize("key", ["sk-two\nlines-0001", "sk-sch\u00f6n-0001", "sk two words"])
def test_a_key_that_no_header_takes_is_refused_without_a_word_of_it(monkeypatch, key: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(NpusmithError) as caught:
        client("http://127.0.0.1:9/v1", Pauses(), key_name="MY_KEY")
    assert caught.value.code == "model-key"
    assert "sk" not in caught.value.render().replace("task", "")


@pytest.mark.parametrize("counts", [(0, 0), (1 << 70, 1), (-1, 5), ("3", 4), (None, None)])
def test_tokens_that_cannot_be_are_counted_by_us(counts: tuple[object, object]) -> None:
    usage = dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=True))

    def play(handler: BaseHTTPRequestHandler, body: dict[str, Any], turn: int) -> None:
        send(handler, 200, {**said("ok"), "usage": usage})

    found = client(Server(play).url, Pauses()).ask(ask()).usage
    assert found.estimated and 0 < found.total < 100


def test_what_a_server_does_not_know_is_left_out_or_called_otherwise() -> None:
    bodies: list[dict[str, Any]] = []

    def play(handler: BaseHTTPRequestHandler, body: dict[str, Any], turn: int) -> None:
        bodies.append(body)
        for name in ("stream_options", "max_tokens"):
            if name in body:
                send(handler, 400, {"error": {"message": f"unsupported parameter: '{name}'"}})
                return
        send(handler, 200, said("ok"))

    server = Server(play)
    assert client(server.url, Pauses()).ask(ask()).text == "ok"
    assert bodies[-1]["max_completion_tokens"] == 100
    assert len(bodies) == 3


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (400, "This model's maximum context length is 8192 tokens", "model-context"),
        (413, "no", "model-context"),
        (422, "input is too long", "model-context"),
        (400, "no such field", "model-refused"),
        (404, "the model m does not exist", "model-refused"),
        (402, "insufficient balance", "model-refused"),
    ],
)
def test_a_prompt_that_does_not_fit_is_told_from_a_server_that_refuses(
    status: int, words: str, code: str
) -> None:
    def play(handler: BaseHTTPRequestHandler, body: dict[str, Any], turn: int) -> None:
        send(handler, status, {"error": {"message": words}})

    server = Server(play)
    with pytest.raises(NpusmithError) as caught:
        client(server.url, Pauses()).ask(ask())
    assert (caught.value.code, server.turns) == (code, 1)
    assert words in caught.value.message


def test_no_more_calls_at_a_time_than_allowed() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def play(handler: BaseHTTPRequestHandler, body: dict[str, Any], turn: int) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1
        send(handler, 200, said("ok"))

    model = client(Server(play).url, Pauses(), concurrency=2)
    threads = [threading.Thread(target=model.ask, args=(ask(),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2


@pytest.mark.parametrize("body", ["[]", '{"choices": 3}', '{"choices": [{"message": 7}]}', "{"])
def test_json_that_is_no_answer_is_an_error_with_a_code(body: str) -> None:
    def play(handler: BaseHTTPRequestHandler, _: dict[str, Any], turn: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body.encode())

    with pytest.raises(NpusmithError) as caught:
        client(Server(play).url, Pauses()).ask(ask())
    assert caught.value.code in ("model-garbled", "model-empty")


def call(arguments: Any, index: int = 0) -> dict[str, Any]:
    return {"index": index, "function": {"name": "write", "arguments": arguments}}


def whole(**message: Any) -> str:
    return read_whole([json.dumps({"choices": [{"message": message}]}).encode()]).text


def test_what_a_model_gives_a_tool_that_nobody_offered_is_its_answer() -> None:
    program = "TILE = 4096\n\n@host\ndef host(x, y): ..."
    given = json.dumps({"path": "a.py", "content": program})
    fenced = f"```\n{program}\n```\n"
    assert whole(content=None, tool_calls=[call(given)]) == fenced
    events = b"".join(
        b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [call(part)]}}]}).encode()
        + b"\n\n" for part in (given[:9], given[9:])
    )  # fmt: skip
    assert read_events([events, b"data: [DONE]\n"]).text == fenced
    assert whole(content="Here it is.", tool_calls=[call(given)]) == "Here it is."
    for odd in ("no JSON", "[1]", "{}", 5, None):
        assert whole(content="", tool_calls=[call(odd), 7]) == ""
