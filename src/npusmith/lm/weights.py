"""Weights on disk: one safetensors file, matrices as int8 with a scale for each row.

A row of a matrix is `scale * int8`, scale being its largest magnitude over 127; vectors stay
float32. The header names the architecture, the digest of the tokenizer that the weights were
trained with, and a hash of the data, so that a file that was cut or changed is known as one.
The format is that of safetensors 0.x: eight bytes of length, a header in JSON, the data.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npusmith.errors import NpusmithError, Place

FILE = "model.safetensors"
FORMAT = "npusmith-lm-1"
_SCALE = ".scale"
_MOST_HEADER = 1 << 20
_MOST_BYTES = 1 << 30
_TYPES: dict[str, np.dtype[Any]] = {"I8": np.dtype(np.int8), "F32": np.dtype("<f4")}
Floats = npt.NDArray[np.float32]


class Architecture(BaseModel):
    """Of a Llama: RMS norms, rotary positions, SwiGLU, no biases."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    vocabulary: int = Field(ge=4, le=1 << 17)
    width: int = Field(ge=2, le=1 << 13)
    layers: int = Field(ge=1, le=256)
    heads: int = Field(ge=1, le=256)
    groups: int = Field(ge=1, le=256)  # heads of keys and values
    head: int = Field(ge=2, le=1 << 10)  # numbers of a head
    hidden: int = Field(ge=1, le=1 << 15)
    context: int = Field(ge=8, le=1 << 20)  # positions
    theta: float = Field(gt=1)  # base of the rotary frequencies
    epsilon: float = Field(gt=0, lt=1)
    tied: bool = True  # the embedding also gives the logits

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The tensors, by their names in transformers."""
        query, key = self.heads * self.head, self.groups * self.head
        yield "model.embed_tokens.weight", (self.vocabulary, self.width)
        for layer in range(self.layers):
            at = f"model.layers.{layer}"
            yield f"{at}.input_layernorm.weight", (self.width,)
            yield f"{at}.self_attn.q_proj.weight", (query, self.width)
            yield f"{at}.self_attn.k_proj.weight", (key, self.width)
            yield f"{at}.self_attn.v_proj.weight", (key, self.width)
            yield f"{at}.self_attn.o_proj.weight", (self.width, query)
            yield f"{at}.post_attention_layernorm.weight", (self.width,)
            yield f"{at}.mlp.gate_proj.weight", (self.hidden, self.width)
            yield f"{at}.mlp.up_proj.weight", (self.hidden, self.width)
            yield f"{at}.mlp.down_proj.weight", (self.width, self.hidden)
        yield "model.norm.weight", (self.width,)
        if not self.tied:
            yield "lm_head.weight", (self.vocabulary, self.width)


@dataclass(frozen=True, slots=True)
class Weights:
    """An architecture, float32 tensors by name, and the digest of the tokenizer."""

    architecture: Architecture
    tensors: Mapping[str, Floats]
    tokenizer: str


def quantise(matrix: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Rows as int8, and their scales; a row of zeros has the scale 1."""
    largest = np.abs(matrix).max(axis=1)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale


def dequantise(rows: npt.NDArray[np.int8], scale: Floats) -> Floats:
    return (rows.astype(np.float32) * scale[:, None]).astype(np.float32)


def write(path: Path, weights: Weights) -> None:
    """Raises lm-weights for tensors that are not the architecture's, or not finite."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    at = 0
    for name, array in _stored(path, weights):
        kind = next(text for text, dtype in _TYPES.items() if dtype == array.dtype)
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(data)],
        }  # fmt: skip
        parts.append(data)
        at += len(data)
    whole = b"".join(parts)
    header["__metadata__"] = {
        "format": FORMAT, "architecture": weights.architecture.model_dump_json(),
        "tokenizer": weights.tokenizer, "sha256": hashlib.sha256(whole).hexdigest(),
    }  # fmt: skip
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + whole)


def _stored(path: Path, weights: Weights) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    for name, shape in weights.architecture.shapes():
        tensor = weights.tensors.get(name)
        if tensor is None or tensor.shape != shape or not np.isfinite(tensor).all():
            seen = "not there" if tensor is None else f"{tensor.shape}"
            raise _error(path, f"{name} is no finite tensor of shape {shape}", seen)
        if tensor.ndim == 1:
            yield name, tensor.astype(np.float32)
        else:
            rows, scale = quantise(tensor.astype(np.float32))
            yield name, rows
            yield name + _SCALE, scale


def read(path: Path) -> Weights:
    """What `write` wrote, as float32. Raises file-missing and lm-weights."""
    if not path.is_file():
        raise NpusmithError("file-missing", f"{path} is no file", Place(str(path)))
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise ValueError(f"{size:,} bytes")
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        if not 2 <= length <= _MOST_HEADER or 8 + length > len(data):
            raise ValueError(f"a header of {length:,} bytes in {len(data):,}")
        header = json.loads(data[8 : 8 + length])
        told = header.pop("__metadata__")
        if told.get("format") != FORMAT:
            raise ValueError(f"the format {told.get('format')!r}")
        body = memoryview(data)[8 + length :]
        if hashlib.sha256(body).hexdigest() != told["sha256"]:
            raise ValueError("another hash of the data than its own")
        architecture = Architecture.model_validate_json(told["architecture"])
        tensors = dict(_tensors(architecture, header, body))
        return Weights(architecture, tensors, str(told["tokenizer"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise _error(path, "the file cannot be read", why) from error


def _tensors(
    architecture: Architecture, header: Mapping[str, Any], body: memoryview
) -> Iterator[tuple[str, Floats]]:
    for name, shape in architecture.shapes():
        if len(shape) == 1:
            yield name, _array(header[name], "F32", shape, body)
        else:
            rows = _array(header[name], "I8", shape, body)
            yield name, dequantise(rows, _array(header[name + _SCALE], "F32", shape[:1], body))


def _array(
    entry: Mapping[str, Any], kind: str, shape: tuple[int, ...], body: memoryview
) -> npt.NDArray[Any]:
    first, last = entry["data_offsets"]
    wanted = math.prod(shape) * _TYPES[kind].itemsize
    if entry["dtype"] != kind or tuple(entry["shape"]) != shape:
        raise ValueError(f"a tensor of {entry['dtype']} {entry['shape']}, not {kind} {shape}")
    if not 0 <= first <= last <= len(body) or last - first != wanted:
        raise ValueError(f"{last - first} bytes for {wanted}")
    found: npt.NDArray[Any] = np.frombuffer(body[first:last], _TYPES[kind])
    return found.reshape(shape)


def _error(path: Path, message: str, seen: str) -> NpusmithError:
    return NpusmithError("lm-weights", message, Place(str(path)), seen=seen[:200])
