"""A checkpoint on this machine as a Model, through transformers (npusmith[local]).

Nothing is downloaded: the path must hold the files. The same seed gives the same text on the same
machine and versions.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from npusmith.agent.talk import Answer, Request, Usage
from npusmith.errors import NpusmithError, Place


class Checkpoint:
    """One call at a time: the weights are used by one thread."""

    def __init__(self, folder: Path) -> None:
        place = Place(str(folder))
        if not (folder / "config.json").is_file():
            raise NpusmithError("file-missing", f"{folder} holds no checkpoint", place)
        try:
            import transformers
        except ImportError as error:
            raise NpusmithError(
                "extra-missing",
                "transformers is not installed",
                hint='pip install "npusmith[local]"',
            ) from error
        self.name = folder.name
        self._lock = threading.Lock()
        try:
            load: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
            self._words: Any = transformers.AutoTokenizer.from_pretrained(folder, **load)
            self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, **load)
        except (OSError, ValueError, RuntimeError, ImportError, KeyError) as error:
            seen = f"{type(error).__name__}: {error}"[:300]
            message = f"{folder} cannot be loaded"
            raise NpusmithError("file-unusable", message, place, seen=seen) from error
        self._model.eval()

    def ask(self, request: Request) -> Answer:
        import torch

        with self._lock, torch.inference_mode():
            prompt = self._words(self._prompt(request), return_tensors="pt")
            prompt = {name: prompt[name] for name in ("input_ids", "attention_mask")}
            size = int(prompt["input_ids"].shape[1])
            room = self._room(size)
            torch.manual_seed(request.seed)
            sampling: dict[str, Any] = {"do_sample": request.temperature > 0}
            if sampling["do_sample"]:
                sampling["temperature"] = request.temperature
            most = min(request.max_tokens, room)
            made = self._model.generate(**prompt, max_new_tokens=most, **sampling)
        new = made[0][size:]
        usage = Usage(prompt=size, completion=len(new))
        finish = "length" if len(new) >= most else "stop"
        text = self._words.decode(new, skip_special_tokens=True)
        return Answer(text=text, usage=usage, model=self.name, finish=finish)

    def _room(self, size: int) -> int:
        """Tokens that the context still has for an answer; raises model-context for none."""
        whole = getattr(self._model.config, "max_position_embeddings", None) or 1 << 30
        if size >= whole:
            message = f"the prompt has {size:,} tokens, the context of {self.name} {whole:,}"
            raise NpusmithError("model-context", message)
        return int(whole) - size

    def _prompt(self, request: Request) -> str:
        messages = [item.model_dump() for item in request.messages]
        if getattr(self._words, "chat_template", None):
            made = self._words.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            return str(made)
        return "\n\n".join(item["content"] for item in messages) + "\n"
