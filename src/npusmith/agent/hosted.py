"""Any provider that litellm knows, as a Model. Needs npusmith[llm]; keys are litellm's matter.

Attempts and pauses are ours: litellm's own need a further package, and fail without a word of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from npusmith.agent.again import Again, insist
from npusmith.agent.talk import Answer, Request, Usage, estimate
from npusmith.errors import NpusmithError

# By class name: importing litellm takes seconds, and its classes move between versions.
_ERRORS = {
    "Timeout": "model-slow",
    "APIConnectionError": "model-down",
    "AuthenticationError": "model-key",
    "PermissionDeniedError": "model-key",
    "RateLimitError": "model-busy",
    "ServiceUnavailableError": "model-busy",
    "InternalServerError": "model-busy",
    "ContextWindowExceededError": "model-context",
}


# What may pass by itself.
_AGAIN = {"model-slow", "model-down", "model-busy", "model-empty"}


class Hosted:
    """A thin wrapper around litellm.completion."""

    def __init__(
        self, model: str, seconds: float, attempts: int, base_url: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        # nothing is fetched that nobody asked for
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        try:
            import litellm
        except ImportError as error:
            raise NpusmithError(
                "extra-missing", "litellm is not installed", hint='pip install "npusmith[llm]"'
            ) from error
        litellm.suppress_debug_info = True  # it prints to stdout
        self.name = model
        self._complete: Any = litellm.completion
        self._attempts, self._sleep = attempts, sleep
        self._options = {"timeout": seconds, "max_retries": 0}
        if base_url:
            self._options["api_base"] = base_url  # type: ignore[assignment]

    def ask(self, request: Request) -> Answer:
        return insist(lambda: self._once(request), self._attempts, self._sleep, self.name)

    def _once(self, request: Request) -> Answer:
        try:
            found = self._complete(
                model=self.name, messages=[item.model_dump() for item in request.messages],
                temperature=request.temperature, seed=request.seed, drop_params=True,
                max_tokens=request.max_tokens, **self._options,
            )  # fmt: skip
        except Exception as error:
            code = _code(error)
            words = f"{self.name}: {type(error).__name__}"  # its text may hold what was sent
            raise (Again if code in _AGAIN else NpusmithError)(code, words) from None
        choice = found.choices[0]
        text = choice.message.content or ""
        if not text.strip():
            raise Again("model-empty", f"{self.name}: the answer is empty")
        usage = estimate(request, text)
        if getattr(found, "usage", None):
            said = found.usage
            usage = Usage(prompt=said.prompt_tokens, completion=said.completion_tokens)
        return Answer(
            text=text, usage=usage, model=self.name, finish=choice.finish_reason or "stop"
        )


def _code(error: Exception) -> str:
    """By the class, and where classes say less than that, by the words."""
    if "Connection error" in str(error):
        return "model-down"
    return _ERRORS.get(type(error).__name__, "model-refused")
