"""Any provider that litellm knows, as a Model. Needs npusmith[llm]; keys are litellm's matter."""

from __future__ import annotations

import os
from typing import Any

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
}


class Hosted:
    """A thin wrapper: litellm itself retries and pauses."""

    def __init__(self, model: str, seconds: float, attempts: int, base_url: str = "") -> None:
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
        self._options = {"timeout": seconds, "num_retries": attempts - 1}
        if base_url:
            self._options["api_base"] = base_url  # type: ignore[assignment]

    def ask(self, request: Request) -> Answer:
        try:
            found = self._complete(
                model=self.name, messages=[item.model_dump() for item in request.messages],
                temperature=request.temperature, seed=request.seed, drop_params=True,
                max_tokens=request.max_tokens, **self._options,
            )  # fmt: skip
        except Exception as error:
            code = _ERRORS.get(type(error).__name__, "model-refused")
            words = f"{self.name}: {type(error).__name__}"  # its text may hold what was sent
            raise NpusmithError(code, words) from error
        choice = found.choices[0]
        text = choice.message.content or ""
        if not text.strip():
            raise NpusmithError("model-empty", f"{self.name}: the answer is empty")
        usage = estimate(request, text)
        if getattr(found, "usage", None):
            said = found.usage
            usage = Usage(prompt=said.prompt_tokens, completion=said.completion_tokens)
        return Answer(
            text=text, usage=usage, model=self.name, finish=choice.finish_reason or "stop"
        )
