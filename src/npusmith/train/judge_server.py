"""`npusmith judge-server`: the reward over HTTP, for trainers in other processes.

    POST /reward      {"task": TEXT, "completion": TEXT}      -> {"reward": 0.2, "details": {...}}
    POST /rewards     {"tasks": [...], "completions": [...]}  -> {"rewards": [...], ...}
    POST /get_reward  {"query": [...], "prompts": [...], "labels": [TASK, ...]}, as OpenRLHF asks
    GET  /health      version, route, what was judged

Tasks come as texts: no client names a file of this machine. It listens on this machine alone, and
answers to its names only, so that no page in a browser reaches it under another one.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from npusmith.errors import NpusmithError
from npusmith.train.reward import Details, Reward
from npusmith.version import __version__

HOST = "127.0.0.1"
MOST_BYTES = 64 << 20  # of a request
MOST_ITEMS = 4096  # completions of a request
_NEEDED = (
    "starlette.applications", "starlette.responses", "starlette.routing", "uvicorn",
    "starlette.middleware.trustedhost",
)  # fmt: skip

Answer = tuple[int, dict[str, Any]]
Handler = Callable[[Reward, Any], Awaitable[dict[str, Any]]]


async def _one(reward: Reward, data: Any) -> dict[str, Any]:
    task, completion = _texts(data, "task", "completion")
    value, details = await reward.ask(task, completion)
    return {"reward": value, "details": _plain(details)}


async def _several(reward: Reward, data: Any) -> dict[str, Any]:
    return await _rewards(reward, _lists(data, "tasks"), _lists(data, "completions"))


async def _openrlhf(reward: Reward, data: Any) -> dict[str, Any]:
    """`query` is prompt and completion in one text, as that trainer sends it."""
    queries, labels = _lists(data, "query"), _lists(data, "labels")
    prompts = _lists(data, "prompts") if "prompts" in data else [""] * len(queries)
    if len(prompts) != len(queries):
        raise _unreadable("prompts and query are of different lengths")
    pairs = zip(queries, prompts, strict=True)
    texts = [query.removeprefix(prompt) for query, prompt in pairs]
    found = await _rewards(reward, labels, texts)
    return {**found, "scores": found["rewards"]}


async def _rewards(
    reward: Reward, tasks: Sequence[str], completions: Sequence[str]
) -> dict[str, Any]:
    if len(tasks) != len(completions) or len(tasks) > MOST_ITEMS:
        counts = f"{len(tasks)} tasks and {len(completions)} completions"
        raise _unreadable(f"{counts}: as many of each, at most {MOST_ITEMS}")
    found = await asyncio.to_thread(reward.batch, tasks, completions)
    return {
        "rewards": [value for value, _ in found], "details": [_plain(item) for _, item in found],
    }  # fmt: skip


_HANDLERS: dict[str, Handler] = {
    "/reward": _one, "/rewards": _several, "/get_reward": _openrlhf,
}  # fmt: skip


async def answer(reward: Reward, path: str, body: bytes) -> Answer:
    """Status and data; what is wrong with a request is an error with its code, never a stop."""
    try:
        return 200, await _HANDLERS[path](reward, _read(body))
    except NpusmithError as error:
        return 400, {"error": error.record()}


def application(reward: Reward) -> Any:
    """The ASGI application; raises extra-missing without Starlette."""
    applications, responses, routing, _, hosts = _modules()

    async def post(request: Any) -> Any:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                refused = _unreadable(f"more than {MOST_BYTES:,} bytes")
                return responses.JSONResponse({"error": refused.record()}, 413)
        status, data = await answer(reward, request.url.path, body)
        return responses.JSONResponse(data, status)

    async def health(request: Any) -> Any:
        seen = dict(reward.seen)
        found = {"npusmith": __version__, "route": reward.route.value, "judged": seen}
        return responses.JSONResponse(found)

    routes = [routing.Route(path, post, methods=["POST"]) for path in _HANDLERS]
    app = applications.Starlette(routes=[*routes, routing.Route("/health", health)])
    app.add_middleware(hosts.TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    return app


def serve(reward: Reward, port: int, listening: Callable[[str], None]) -> None:
    """Answers until Ctrl-C or SIGTERM. `listening` is told the URL. Raises serve-port."""
    uvicorn = _modules()[3]
    app = application(reward)
    with socket.socket() as ear:
        ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            ear.bind((HOST, port))
        except OSError as error:
            message = f"port {port} cannot be used: {error.strerror}"
            raise NpusmithError("serve-port", message, seen=str(port)) from error
        ear.listen()
        listening(f"http://{HOST}:{ear.getsockname()[1]}")
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[ear])


def _modules() -> list[Any]:
    try:
        return [importlib.import_module(name) for name in _NEEDED]
    except ImportError as error:
        raise NpusmithError(
            "extra-missing", f"{error.name} is not installed",
            hint="pip install 'npusmith[serve]'",
        ) from error  # fmt: skip


def _read(body: bytes) -> Any:
    try:
        data = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _unreadable(str(error)) from error
    if not isinstance(data, dict):
        raise _unreadable("not an object")
    return data


def _texts(data: dict[str, Any], *names: str) -> list[str]:
    found = [data.get(name) for name in names]
    if not all(isinstance(item, str) for item in found):
        raise _unreadable(f"{' and '.join(names)} are texts")
    return [str(item) for item in found]


def _lists(data: dict[str, Any], name: str) -> list[str]:
    found = data.get(name)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise _unreadable(f"{name} is a list of texts")
    return found


def _unreadable(why: str) -> NpusmithError:
    return NpusmithError("judge-request", "the request cannot be read", seen=why[:200])


def _plain(details: Details) -> dict[str, Any]:
    return details.model_dump(mode="json")
