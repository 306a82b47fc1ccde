"""The reward over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from npusmith.train.judge_server import MOST_BYTES, application, serve
from npusmith.train.reward import Details, Reward


class Counted(Reward):
    """A reward that needs no task: the number of words, so that the server alone is looked at."""

    def batch(
        self, tasks: Sequence[Any], completions: Sequence[str]
    ) -> list[tuple[float, Details]]:
        found = [Details(reward=len(text.split()), level="ran") for text in completions]
        return [(item.reward, item) for item in found]

    async def ask(self, task: Any, completion: str) -> tuple[float, Details]:
        return self.batch([task], [completion])[0]


def ask(path: str, body: bytes | Any, host: str = "localhost") -> tuple[int, Any]:
    async def talk() -> httpx.Response:
        with Counted(workers=1) as reward:
            transport = httpx.ASGITransport(app=application(reward))
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                return await client.post(path, content=data)

    found = asyncio.run(talk())
    return found.status_code, found.json() if "json" in found.headers["content-type"] else None


def test_one_several_and_the_form_of_openrlhf() -> None:
    status, found = ask("/reward", {"task": "t", "completion": "a b c"})
    assert (status, found["reward"], found["details"]["level"]) == (200, 3, "ran")
    status, found = ask("/rewards", {"tasks": ["t", "t"], "completions": ["a", "a b"]})
    assert found["rewards"] == [1, 2]
    data = {"query": ["ask: a b"], "prompts": ["ask: "], "labels": ["t"]}
    assert ask("/get_reward", data)[1]["rewards"] == [2]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/reward", b"\xff"),
        ("/reward", b"[" * 100_000),
        ("/reward", []),
        ("/reward", {"task": "t"}),
        ("/reward", {"task": "t", "completion": 3}),
        ("/rewards", {"tasks": ["t"], "completions": []}),
        ("/rewards", {"tasks": "t", "completions": "c"}),
        ("/get_reward", {"query": ["q"], "prompts": [], "labels": ["t"]}),
    ],
)
def test_what_cannot_be_read_is_named(path: str, body: Any) -> None:
    status, found = ask(path, body)
    assert (status, found["error"]["code"]) == (400, "judge-request")


def test_a_body_without_an_end_is_cut_and_other_names_are_refused() -> None:
    assert ask("/reward", b" " * (MOST_BYTES + 1))[0] == 413
    assert ask("/reward", {"task": "t", "completion": "c"}, host="evil.example")[0] == 400


def test_a_port_that_is_taken_is_named() -> None:
    import socket

    from npusmith.errors import NpusmithError

    with socket.socket() as ear, Counted(workers=1) as reward:
        ear.bind(("127.0.0.1", 0))
        ear.listen()
        with pytest.raises(NpusmithError, match="serve-port"):
            serve(reward, ear.getsockname()[1], lambda url: None)
