"""A chat endpoint that speaks OpenAI's protocol: vLLM, SGLang, Ollama, llama.cpp, hosted APIs.

`Endpoint(Settings(...)).ask(request)` streams the answer. What may pass by itself (429, 5xx, a lost
connection, silence) is tried again after a pause that doubles, or that Retry-After names. The key
is read from the environment, is in no record, and is blotted out of everything that comes back.

Raises model-down, model-slow, model-busy, model-key, model-refused, model-context, model-cut,
model-garbled, model-empty and model-long.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from npusmith.agent.again import PAUSE, Again, insist
from npusmith.agent.stream import Parts, read_events, read_whole
from npusmith.agent.talk import Answer, Request, Usage, estimate
from npusmith.errors import NpusmithError

KEY = "NPUSMITH_API_KEY"
_AGAIN = {408, 425, 429, 500, 502, 503, 504, 529}
# What servers say of a prompt that is too long; their codes differ.
_CONTEXT = re.compile(
    r"context|too long|too large|maximum.{0,20}(length|tokens)|exceed", re.IGNORECASE
)
_LOCAL = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}
# What some servers refuse: left out, or called otherwise, once they have said so.
_QUIRKS = {
    "stream_options": "",
    "seed": "",
    "temperature": "",
    "max_tokens": "max_completion_tokens",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How an endpoint is reached."""

    model: str
    url: str  # up to and with /v1
    key_name: str = KEY  # the environment variable that holds the key
    silence: float = 120.0  # seconds without a byte
    seconds: float = 900.0  # of one call in all
    attempts: int = 6
    pause: float = PAUSE
    concurrency: int = 4  # calls at a time
    most_bytes: int = 4 << 20  # of an answer on the wire

    @property
    def local(self) -> bool:
        return (urlsplit(self.url).hostname or "") in _LOCAL


class Endpoint:
    """A Model behind a URL; safe to call from several threads."""

    def __init__(self, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        self.name = settings.model
        self._settings, self._sleep = settings, sleep
        self._key = _read_key(settings.key_name)
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._renamed: dict[str, str] = {}
        self._client = httpx.Client(
            timeout=httpx.Timeout(settings.silence, connect=min(10.0, settings.silence)),
            trust_env=not settings.local,  # a proxy for the world is none for this machine
            limits=httpx.Limits(max_connections=settings.concurrency),
        )

    def ask(self, request: Request) -> Answer:
        """The answer, after as many attempts as the settings allow."""
        settings = self._settings
        with self._slots:
            return insist(
                lambda: self._once(request), settings.attempts, self._sleep, settings.url,
                settings.pause,
            )  # fmt: skip

    def _once(self, request: Request) -> Answer:
        deadline = time.monotonic() + self._settings.seconds
        try:
            with self._client.stream(
                "POST", address(self._settings.url),
                json=self._body(request), headers=self._headers(),
            ) as response:  # fmt: skip
                if response.status_code != 200:
                    return self._refused(response, request)
                return self._answer(response, request, deadline)
        except httpx.TimeoutException as error:
            raise Again("model-slow", f"{self.name}: {_words(error)}") from error
        except (httpx.ConnectError, httpx.UnsupportedProtocol) as error:
            raise Again("model-down", f"{self.name}: {_words(error)}") from error
        except (httpx.TransportError, httpx.StreamError) as error:
            raise Again("model-cut", f"{self.name}: {_words(error)}") from error
        except httpx.InvalidURL as error:
            raise NpusmithError("model-spec", str(error), seen=self._settings.url) from error

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [item.model_dump() for item in request.messages],
            "temperature": request.temperature,
            "seed": request.seed,
            "max_tokens": request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        for old, new in self._renamed.items():
            value = body.pop(old, None)
            if new:
                body[new] = value
        return body

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def _answer(self, response: httpx.Response, request: Request, deadline: float) -> Answer:
        chunks = self._bytes(response, deadline)
        whole = "text/event-stream" not in response.headers.get("content-type", "")
        try:
            parts = read_whole(chunks) if whole else read_events(chunks)
        except UnicodeDecodeError as error:
            raise Again("model-garbled", f"{self.name}: the answer is not UTF-8") from error
        except ValueError as error:
            raise Again("model-garbled", f"{self.name}: the answer is {error}") from error
        return self._checked(parts, request)

    def _checked(self, parts: Parts, request: Request) -> Answer:
        if parts.error:  # cleaned before it is cut: half a key is one, too
            raise Again("model-busy", f"{self.name}: {self._clean(parts.error)[:300]}")
        if not parts.ended:
            raise Again(
                "model-cut", f"{self.name}: the stream ended after {len(parts.text)} characters"
            )
        if not parts.text.strip():
            raise Again("model-empty", f"{self.name}: the answer is empty")
        # half a surrogate pair is legal JSON and no text
        text = self._clean(parts.text).encode("utf-8", "replace").decode()
        usage = estimate(request, text)
        if parts.usage is not None and any(parts.usage):  # no call is free of tokens
            usage = Usage(prompt=parts.usage[0], completion=parts.usage[1])
        model, finish = self._clean(parts.model or self.name), self._clean(parts.finish)
        return Answer(text=text, usage=usage, model=model[:200], finish=finish[:40])

    def _bytes(self, response: httpx.Response, deadline: float) -> Iterator[bytes]:
        """The body, as long as it is neither too long nor too slow."""
        total = 0
        for chunk in response.iter_bytes():
            total += len(chunk)
            if total > self._settings.most_bytes:
                raise NpusmithError(
                    "model-long", f"{self.name} did not stop",
                    seen=f"more than {self._settings.most_bytes:,} bytes",
                )  # fmt: skip
            if time.monotonic() > deadline:
                raise Again(
                    "model-slow", f"{self.name}: not done after {self._settings.seconds:g} s"
                )
            yield chunk

    def _refused(self, response: httpx.Response, request: Request) -> Answer:
        """What a status other than 200 means; asks again without what the server does not know."""
        status = response.status_code
        said = self._clean(next(response.iter_text(8000), ""))[:2000]
        words = f"{self.name}: HTTP {status}: {' '.join(said.split())[:300]}"
        if status in _AGAIN:
            raise Again("model-busy", words, _retry_after(response.headers))
        if status in (401, 403):
            held = "is set" if self._key else "is not set"
            seen = f"{self._settings.key_name} {held}"
            raise NpusmithError("model-key", words, seen=seen)
        quirk = next((name for name in _QUIRKS if name in said and name not in self._renamed), "")
        if status in (400, 422) and quirk:
            self._renamed = {**self._renamed, quirk: _QUIRKS[quirk]}
            return self._once(request)
        if status == 413 or (status in (400, 422) and _CONTEXT.search(said)):
            raise NpusmithError("model-context", words, seen=self._settings.url)
        raise NpusmithError("model-refused", words, seen=self._settings.url)

    def _clean(self, text: str) -> str:
        """The text without the key, should a server send it back."""
        return text.replace(self._key, "***") if len(self._key) >= 8 else text


def address(url: str) -> str:
    """Where completions are asked for: behind the path, in front of a query."""
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/chat/completions").geturl()


def _read_key(name: str) -> str:
    """From the environment; what no header could carry is refused here, where nothing shows it."""
    key = os.environ.get(name, "").strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise NpusmithError("model-key", f"{name} holds characters that no key has")
    return key


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, or a date; None where there is neither."""
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except (TypeError, ValueError):
        return None


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")[:300]
