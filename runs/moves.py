"""Modules that move, join, pad and pool: estimated time against eager's estimate.

    python runs/moves.py [--json FILE] [CASE...]

One line for each, as of short_axes.py. Joins, rolls, paddings and shifts between pointwise work,
pooling of sequences, and the operations of networks around them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from short_axes import Cases, main

CASES: Cases = {
    "cat chan relu": (
        lambda x, y: torch.cat([x, F.relu(y)], 1),
        ((16, 64, 28, 28), (16, 32, 28, 28)),
    ),
    "cat chan 4": (lambda a, b, c, d: torch.cat([a, b, c, d], 1), ((16, 64, 28, 28),) * 4),
    "dense block cat": (
        lambda x, y: F.relu(torch.cat([x, y], 1) * 2 + 1),
        ((16, 64, 28, 28), (16, 32, 28, 28)),
    ),
    "cat cols": (lambda x, y: torch.cat([x, y * 2], 1), ((1024, 1000), (1024, 300))),
    "cat cols even": (lambda x, y: torch.cat([x, y], -1), ((4096, 512), (4096, 512))),
    "cat cols 128": (lambda x, y: torch.cat([x, y], -1), ((8192, 128), (8192, 64))),
    "cls token": (
        lambda x, t: torch.cat([t.expand(16, -1, -1), x], 1),
        ((16, 196, 768), (1, 1, 768)),
    ),
    "kv cache": (lambda x, y: torch.cat([x, y], 2), ((4, 16, 500, 64), (4, 16, 12, 64))),
    "concat relu crelu": (lambda x: torch.cat([F.relu(x), F.relu(-x)], 1), ((16, 64, 28, 28),)),
    "rope half": (
        lambda x, c, s: x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s,
        ((8, 16, 512, 64), (512, 64), (512, 64)),
    ),
    "rope half 128": (
        lambda x, c, s: x * c + torch.cat([-x[..., 64:], x[..., :64]], -1) * s,
        ((4, 16, 1024, 128), (1024, 128), (1024, 128)),
    ),
    "rope inter": (
        lambda x, c, s: torch.stack(
            [x[..., ::2] * c - x[..., 1::2] * s, x[..., 1::2] * c + x[..., ::2] * s], -1
        ).flatten(-2),
        ((8, 16, 512, 64), (512, 32), (512, 32)),
    ),
    "pad zero": (lambda x: F.pad(x, (1, 1, 1, 1)), ((16, 64, 56, 56),)),
    "pad reflect": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), ((16, 64, 56, 56),)),
    "pad last": (lambda x: F.pad(x, (0, 24)), ((4096, 1000),)),
    "pad rows": (lambda x: F.pad(x, (0, 0, 0, 7)), ((512, 1024),)),
    "pad seq left": (lambda x: F.pad(x, (0, 0, 1, 0)), ((16, 512, 768),)),
    "token shift": (lambda x: x * 0.3 + F.pad(x, (0, 0, 1, -1)) * 0.7, ((16, 512, 768),)),
    "diff": (lambda x: x[:, 1:] - x[:, :-1], ((4096, 1024),)),
    "diff rows": (lambda x: x[1:] - x[:-1], ((4096, 1024),)),
    "roll add": (lambda x: x + x.roll(1, -1) + x.roll(1, 0), ((1024, 1024),)),
    "roll last": (lambda x: x - x.roll(1, -1), ((1024, 1024),)),
    "roll rows": (lambda x: x - x.roll(1, 0), ((1024, 1024),)),
    "roll swin": (lambda x: x.roll((-3, -3), (1, 2)), ((8, 56, 56, 96),)),
    "temporal shift": (
        lambda x: torch.cat([F.pad(x, (0, 0, 0, 0, 0, 0, 0, 1))[1:, :8], x[:, 8:]], 1),
        ((32, 64, 28, 28),),
    ),
    "tv loss": (
        lambda x: (
            (x[:, :, 1:] - x[:, :, :-1]).abs().mean() + (x[..., 1:] - x[..., :-1]).abs().mean()
        ),
        ((8, 3, 224, 224),),
    ),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2), ((8, 64, 56, 56),)),
    "pixel unshuffle": (lambda x: F.pixel_unshuffle(x, 2), ((8, 16, 112, 112),)),
    "channel shuffle": (lambda x: F.channel_shuffle(x, 4), ((16, 64, 28, 28),)),
    "nhwc": (lambda x: x.permute(0, 2, 3, 1) * 2, ((16, 64, 56, 56),)),
    "split swap": (lambda x: torch.cat(x.chunk(2, 1)[::-1], 1), ((16, 64, 28, 28),)),
    "glu": (lambda x: F.glu(x, 1), ((16, 64, 28, 28),)),
    "se concat": (
        lambda x: torch.cat([x, x.mean((2, 3), keepdim=True).expand_as(x)], 1),
        ((16, 64, 28, 28),),
    ),
    "max avg cat": (
        lambda x: torch.cat([x.amax(1, keepdim=True), x.mean(1, keepdim=True)], 1),
        ((16, 64, 56, 56),),
    ),
    "flip h": (lambda x: x.flip(-1), ((16, 64, 56, 56),)),
    "flip bi": (lambda x: torch.cat([x, x.flip(1)], -1), ((16, 512, 256),)),
    "coord conv": (
        lambda x: torch.cat(
            [x, torch.linspace(-1, 1, 56).view(1, 1, 1, 56).expand(16, 1, 56, 56)], 1
        ),
        ((16, 64, 56, 56),),
    ),
    "causal mask": (
        lambda x: x.masked_fill(
            torch.ones(512, 512, dtype=torch.bool).triu(1), float("-inf")
        ).softmax(-1),
        ((8, 4, 512, 512),),
    ),
    "slice assign": (
        lambda x, y: torch.cat([x[:, :100], y, x[:, 164:]], 1),
        ((512, 1024), (512, 64)),
    ),
    "upsample nearest": (lambda x: F.interpolate(x, scale_factor=2), ((8, 64, 28, 28),)),
    "max pool": (lambda x: F.max_pool2d(x, 2), ((16, 64, 56, 56),)),
    "max pool 3 s2": (lambda x: F.max_pool2d(x, 3, 2, 1), ((16, 64, 56, 56),)),
    "avg pool": (lambda x: F.avg_pool2d(x, 2), ((16, 64, 56, 56),)),
    "avg pool 3 s1": (lambda x: F.avg_pool2d(x, 3, 1, 1), ((16, 64, 56, 56),)),
    "global pool": (lambda x: F.adaptive_avg_pool2d(x, 1), ((16, 64, 56, 56),)),
    "adaptive 7": (lambda x: F.adaptive_avg_pool2d(x, 7), ((16, 64, 28, 28),)),
    "masked mean": (
        lambda x, m: (x * (m > 0)).sum(1) / (m > 0).sum(1),
        ((64, 512, 256), (64, 512, 1)),
    ),
    "masked mean2": (
        lambda x, m: (x * m.unsqueeze(-1)).sum(1) / m.sum(1, keepdim=True),
        ((64, 512, 256), (64, 512)),
    ),
    "attn pool": (
        lambda x, s: (x * s.softmax(1).unsqueeze(-1)).sum(1),
        ((64, 512, 256), (64, 512)),
    ),
    "bn eval": (
        lambda x, m, v, g, b: F.batch_norm(x, m, v.abs(), g, b),
        ((16, 64, 56, 56), (64,), (64,), (64,), (64,)),
    ),
    "ln": (lambda x, g, b: F.layer_norm(x, (768,), g, b), ((4096, 768), (768,), (768,))),
    "rms": (
        lambda x, g: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g,
        ((4096, 1024), (1024,)),
    ),
    "add rms": (
        lambda x, r, g: (
            lambda h: (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * g, h)
        )(x + r),
        ((4096, 1024), (4096, 1024), (1024,)),
    ),
    "ce": (
        lambda x, t: F.cross_entropy(x, (t.abs() * 10).long().clamp(0, 999)),
        ((2048, 1000), (2048,)),
    ),
    "kl": (
        lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        ((2048, 1000), (2048, 1000)),
    ),
    "gelu": (lambda x: F.gelu(x), ((2048, 2048),)),
    "outer add": (lambda x, y: x[:, :, None] + y[:, None, :], ((16, 256), (16, 256))),
    "transpose": (lambda x: x.transpose(1, 2).contiguous(), ((16, 512, 768),)),
    "cumsum": (lambda x: x.cumsum(-1), ((2048, 1024),)),
    "cumsum cols": (lambda x: x.cumsum(1), ((16, 512, 256),)),
    "index sel": (lambda x, i: x[(i.abs() * 300).long().clamp(0, 999)], ((1000, 512), (4096,))),
    "onehot": (lambda i: F.one_hot((i.abs() * 30).long().clamp(0, 99), 100).float(), ((4096,),)),
    "wsum": (lambda x, m: (x * m.unsqueeze(-1)).sum(1), ((64, 512, 256), (64, 512))),
    "wsum1": (lambda x, m: (x * m).sum(1), ((64, 512, 256), (64, 512, 1))),
    "mask sum": (lambda m: (m > 0).sum(1), ((64, 512, 1),)),
    "pool cat": (lambda x: torch.cat([x.mean(1), x.amax(1)], -1), ((64, 512, 256),)),
    "avg pool 4": (lambda x: F.avg_pool2d(x, 4), ((16, 64, 28, 28),)),
    "sum mid": (lambda x: x.sum(1), ((64, 512, 256),)),
    "max mid": (lambda x: x.amax(1), ((16, 64, 56, 56),)),
}
if __name__ == "__main__":
    main(CASES, __doc__)
