"""`open_model(choice) -> Model`: an endpoint, a script, a recording, or what litellm knows."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from npusmith.agent.endpoint import KEY, Endpoint, Settings
from npusmith.agent.replay import Recorder, Replay
from npusmith.agent.scripted import Scripted, read_script
from npusmith.agent.talk import Model
from npusmith.errors import NpusmithError

# What some hosts want behind their path; anything else might be a key, and URLs are printed.
_PLAIN_QUERY = re.compile(r"((api[-_])?version=[A-Za-z0-9.-]{1,40})?")
_SCRIPTED, _LITELLM = "scripted", "litellm"


class Choice(BaseModel):
    """Which model, and how it is reached. Nothing secret is in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = ""  # a name at the endpoint, "scripted", "scripted:FILE" or "litellm:NAME"
    base_url: str = ""
    key_name: str = KEY
    concurrency: int = Field(default=4, ge=1, le=1000)
    silence: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    seconds: float = Field(default=900.0, gt=0, allow_inf_nan=False)  # of one call in all
    attempts: int = Field(default=6, ge=1)
    record: Path | None = None
    replay: Path | None = None


def open_model(choice: Choice) -> Model:
    """Raises model-spec, script-file, file-missing, file-unusable and extra-missing."""
    if choice.replay is not None:
        return Replay(choice.replay, choice.model or "replay")
    model = _bare(choice)
    return model if choice.record is None else Recorder(model, choice.record)


def _check_url(choice: Choice) -> None:
    """A URL is printed and kept, and so holds no secret; the message does not repeat one."""
    try:
        parts = urlsplit(choice.base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        seen = "no URL" if not choice.base_url else "a text that is no http(s) URL"
        raise NpusmithError("model-spec", f"{choice.model} has no usable URL", seen=seen)
    if parts.username or parts.password or not _PLAIN_QUERY.fullmatch(parts.query):
        raise NpusmithError(
            "model-spec", "the URL holds a name, password, or a query besides a version",
            seen=f"{parts.scheme}://...@{parts.hostname}",
            hint="put the key into the environment variable that --key-env names",
        )  # fmt: skip


def _bare(choice: Choice) -> Model:
    kind, _, rest = choice.model.partition(":")
    if kind == _SCRIPTED and not choice.base_url:
        return Scripted(read_script(Path(rest)) if rest else None, choice.model)
    if kind == _LITELLM and rest:
        from npusmith.agent.hosted import Hosted

        return Hosted(rest, choice.silence, choice.attempts, choice.base_url)
    if not choice.model:
        raise NpusmithError("model-spec", "no model is named")
    if not choice.key_name.isidentifier():
        raise NpusmithError(
            "model-spec", "--key-env takes the name of an environment variable, not a key",
            seen=f"{len(choice.key_name)} characters",
        )  # fmt: skip
    _check_url(choice)
    if choice.key_name != KEY and not os.environ.get(choice.key_name):
        raise NpusmithError("model-key", f"{choice.key_name} is not set", seen=choice.key_name)
    return Endpoint(
        Settings(
            model=choice.model, url=choice.base_url, key_name=choice.key_name,
            concurrency=choice.concurrency, silence=choice.silence, seconds=choice.seconds,
            attempts=choice.attempts,
        )
    )  # fmt: skip
