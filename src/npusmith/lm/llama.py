"""A Llama in NumPy, float32: `Llama(weights).forward(ids, cache)` gives the next logits.

Prompts of several lengths stand in one batch, padded on the left; what is padding has no weight in
any attention, and positions count from a prompt's own first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from npusmith.lm.weights import Architecture, Floats, Weights

Ids = npt.NDArray[np.int64]


@dataclass(slots=True)
class Cache:
    """Keys and values of what has been read: layers x rows x heads x positions x numbers."""

    keys: Floats
    values: Floats
    padding: Ids  # positions before the first token of each row
    used: int = 0

    def keep(self, rows: Sequence[int]) -> None:
        """Goes on with these rows alone."""
        at = list(rows)
        self.keys, self.values = self.keys[:, at], self.values[:, at]
        self.padding = self.padding[at]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of a layer, transposed for products from the right."""

    before: Floats
    mixed: Floats  # queries, keys and values side by side
    out: Floats
    after: Floats
    gates: Floats  # gate and up side by side
    down: Floats


class Llama:
    """Weights that answer. A call reads ids and leaves what later ones need in its cache."""

    def __init__(self, weights: Weights) -> None:
        self.architecture = weights.architecture
        tensors = weights.tensors
        self._embedding = tensors["model.embed_tokens.weight"]
        head = self._embedding if self.architecture.tied else tensors["lm_head.weight"]
        self._head = _transposed(head)
        self._norm = tensors["model.norm.weight"]
        self._layers = [_layer(weights, at) for at in range(self.architecture.layers)]
        self._frequencies = _frequencies(self.architecture)

    def open(self, prompts: Sequence[Sequence[int]], room: int) -> tuple[Ids, Cache]:
        """Prompts side by side, padded on the left, and a cache for them and `room` more."""
        width = max(map(len, prompts))
        padding = np.array([width - len(prompt) for prompt in prompts], np.int64)
        ids = np.zeros((len(prompts), width), np.int64)
        for row, prompt in enumerate(prompts):
            ids[row, padding[row] :] = prompt
        shape = self.architecture
        size = (shape.layers, len(prompts), shape.groups, width + room, shape.head)
        return ids, Cache(np.zeros(size, np.float32), np.zeros(size, np.float32), padding)

    def forward(self, ids: Ids, cache: Cache, *, every: bool = False) -> Floats:
        """Logits after the last id of each row, or after `every` one: rows [x ids] x vocabulary."""
        start, stop = cache.used, cache.used + ids.shape[1]
        positions = np.arange(start, stop)[None, :] - cache.padding[:, None]
        angles = np.maximum(positions, 0)[:, :, None] * self._frequencies
        turn = _float32(np.cos(angles))[:, :, None], _float32(np.sin(angles))[:, :, None]
        seen = np.arange(stop)[None, None, :] >= cache.padding[:, None, None]
        seen = seen & (np.arange(stop)[None, None, :] <= np.arange(start, stop)[None, :, None])
        # padding sees itself, so that no row of weights is empty
        seen = seen | np.eye(stop, dtype=bool)[None, start:stop]
        bias = np.where(seen, np.float32(0), np.float32(-np.inf))
        states = self._embedding[ids]
        for at, layer in enumerate(self._layers):
            normed = self._rms(states, layer.before)
            states = states + self._attend(layer, at, normed, turn, bias, cache)
            gate, up = np.split(self._rms(states, layer.after) @ layer.gates, 2, axis=-1)
            states = states + (_silu(gate) * up) @ layer.down
        cache.used = stop
        return self._rms(states if every else states[:, -1], self._norm) @ self._head

    def _attend(
        self, layer: _Layer, at: int, normed: Floats, turn: tuple[Floats, Floats], bias: Floats,
        cache: Cache,
    ) -> Floats:  # fmt: skip
        shape = self.architecture
        rows, count, _ = normed.shape
        heads, groups = shape.heads, shape.groups
        mixed = (normed @ layer.mixed).reshape(rows, count, heads + 2 * groups, shape.head)
        turned = _rotate(mixed[:, :, : heads + groups], *turn)
        start, stop = cache.used, cache.used + count
        cache.keys[at, :, :, start:stop] = turned[:, :, heads:].transpose(0, 2, 1, 3)
        cache.values[at, :, :, start:stop] = mixed[:, :, heads + groups :].transpose(0, 2, 1, 3)
        # queries of one group of keys side by side: rows x groups x (queries x ids) x numbers
        queries = turned[:, :, :heads].transpose(0, 2, 1, 3)
        queries = queries.reshape(rows, groups, heads // groups * count, shape.head)
        scores = queries @ cache.keys[at, :, :, :stop].transpose(0, 1, 3, 2)
        scores = scores * np.float32(shape.head**-0.5)
        scores = scores.reshape(rows, groups, heads // groups, count, stop) + bias[:, None, None]
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        weights = weights.reshape(rows, groups, heads // groups * count, stop)
        found = (weights @ cache.values[at, :, :, :stop]).reshape(rows, heads, count, shape.head)
        side_by_side = found.transpose(0, 2, 1, 3).reshape(rows, count, heads * shape.head)
        return _float32(side_by_side @ layer.out)

    def _rms(self, states: Floats, weight: Floats) -> Floats:
        mean = np.mean(states * states, axis=-1, keepdims=True)
        scale = np.sqrt(mean + np.float32(self.architecture.epsilon))
        return _float32(states / scale * weight)


def _layer(weights: Weights, at: int) -> _Layer:
    def tensor(name: str) -> Floats:
        return weights.tensors[f"model.layers.{at}.{name}.weight"]

    mixed = [tensor(f"self_attn.{name}_proj") for name in "qkv"]
    return _Layer(
        before=tensor("input_layernorm"), mixed=_transposed(np.concatenate(mixed)),
        out=_transposed(tensor("self_attn.o_proj")), after=tensor("post_attention_layernorm"),
        gates=_transposed(np.concatenate([tensor("mlp.gate_proj"), tensor("mlp.up_proj")])),
        down=_transposed(tensor("mlp.down_proj")),
    )  # fmt: skip


def _transposed(matrix: Floats) -> Floats:
    return np.ascontiguousarray(matrix.T)


def _frequencies(shape: Architecture) -> Floats:
    """Of each pair of numbers of a head, twice: rotary positions by halves."""
    powers = np.arange(0, shape.head, 2, dtype=np.float32) / shape.head
    return np.tile(np.float32(1) / np.float32(shape.theta) ** powers, 2).astype(np.float32)


def _rotate(states: Floats, cosine: Floats, sine: Floats) -> Floats:
    first, second = np.split(states, 2, axis=-1)
    turned = states * cosine + np.concatenate((-second, first), axis=-1) * sine
    return _float32(turned)


def _silu(states: Floats) -> Floats:
    with np.errstate(over="ignore"):  # exp of a large number: the value is 0
        return _float32(states / (1 + np.exp(-states)))


def _float32(array: npt.NDArray[Any]) -> Floats:
    """The same numbers, which are float32 but to the type checker, or a wider type's."""
    return array.astype(np.float32, copy=False)
