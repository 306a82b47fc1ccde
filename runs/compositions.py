"""Modules of all kinds as users write them: estimated time against eager's estimate.

    python runs/compositions.py [--json FILE] [CASE...]

One line for each, as of short_axes.py. Reductions beside others, joins, moves, losses, gates, steps
of optimizers: what a writer of special cases would be slow at.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from short_axes import Cases, main

CASES: Cases = {
    "norm clip": (
        lambda x, y: (
            x * (1 / (torch.sqrt((x * x).sum() + (y * y).sum()) + 1e-6)).clamp(max=1),
            y * 2,
        ),
        ((1024, 1024), (4096, 256)),
    ),
    "two losses": (
        lambda x, y, z: F.mse_loss(x, y) + 0.1 * z.abs().mean(),
        ((1024, 1024), (1024, 1024), (512, 512)),
    ),
    "cosine rows": (
        lambda x, y: (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1)).clamp_min(1e-8),
        ((4096, 512), (4096, 512)),
    ),
    "cosine cols": (
        lambda x, y: (x * y).sum(0) / (x.norm(dim=0) * y.norm(dim=0)),
        ((4096, 512), (4096, 512)),
    ),
    "row+col norm": (
        lambda x: x / (x.sum(0, keepdim=True) + x.sum(1, keepdim=True)),
        ((2048, 1024),),
    ),
    "row sum broadcast": (lambda x, y: y + x.sum(-1, keepdim=True), ((512, 300), (512, 768))),
    "col stats scale rows": (
        lambda x, w: (x - x.mean(0)) / x.std(0) * w[:, None],
        ((2048, 512), (2048,)),
    ),
    "bn train": (
        lambda x: (
            (x - x.mean((0, 2, 3), keepdim=True))
            / torch.sqrt(x.var((0, 2, 3), keepdim=True, unbiased=False) + 1e-5)
        ),
        ((16, 64, 56, 56),),
    ),
    "instance norm relu": (lambda x: F.relu(F.instance_norm(x)), ((16, 64, 56, 56),)),
    "group norm silu": (lambda x: F.silu(F.group_norm(x, 8)), ((16, 64, 56, 56),)),
    "channel attention": (
        lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True)),
        ((16, 64, 56, 56),),
    ),
    "spatial attention": (
        lambda x: x * torch.sigmoid(x.mean(1, keepdim=True) + x.amax(1, keepdim=True)),
        ((16, 64, 56, 56),),
    ),
    "layer norm channels": (
        lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (64,)).permute(0, 3, 1, 2),
        ((16, 64, 56, 56),),
    ),
    "nhwc bias relu": (lambda x, b: F.relu(x.permute(0, 2, 3, 1) + b), ((16, 64, 56, 56), (64,))),
    "pixel unshuffle": (lambda x: F.pixel_unshuffle(x, 2) * 2, ((16, 16, 112, 112),)),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2) + 1, ((16, 64, 56, 56),)),
    "channel shuffle": (
        lambda x: x.view(16, 4, 16, 56, 56).transpose(1, 2).reshape(16, 64, 56, 56),
        ((16, 64, 56, 56),),
    ),
    "pad reflect blur": (
        lambda x: F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3, 1),
        ((16, 64, 56, 56),),
    ),
    "upsample add": (
        lambda x, y: F.interpolate(x, scale_factor=2) + y,
        ((8, 64, 28, 28), (8, 64, 56, 56)),
    ),
    "upsample bilinear": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        ((8, 64, 28, 28),),
    ),
    "max pool relu": (lambda x: F.relu(F.max_pool2d(x, 2)), ((16, 64, 112, 112),)),
    "global avg": (lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), ((64, 512, 14, 14),)),
    "adaptive 7": (lambda x: F.adaptive_avg_pool2d(x, 7), ((16, 128, 28, 28),)),
    "unfold3": (lambda x: F.unfold(x, 3, padding=1), ((4, 16, 56, 56),)),
    "rope": (
        lambda x, c, s: torch.cat(
            [x[..., :32] * c - x[..., 32:] * s, x[..., 32:] * c + x[..., :32] * s], -1
        ),
        ((8, 16, 512, 64), (512, 32), (512, 32)),
    ),
    "rope rotate half": (
        lambda x, c, s: x * c + torch.cat([-x[..., 32:], x[..., :32]], -1) * s,
        ((8, 16, 512, 64), (512, 64), (512, 64)),
    ),
    "swiglu": (lambda x: F.silu(x[..., :2048]) * x[..., 2048:], ((1024, 4096),)),
    "geglu chunk": (lambda x: (lambda a, b: a * F.gelu(b))(*x.chunk(2, -1)), ((1024, 4096),)),
    "heads split": (lambda x: x.view(8, 512, 16, 64).transpose(1, 2) * 0.125, ((8, 512, 1024),)),
    "heads merge": (lambda x: x.transpose(1, 2).reshape(8, 512, 1024) + 1, ((8, 16, 512, 64),)),
    "kv transpose": (lambda x: x.transpose(-1, -2) * 0.5, ((8, 16, 512, 64),)),
    "causal softmax": (
        lambda x: F.softmax(
            x.masked_fill(torch.ones(512, 512, dtype=torch.bool).triu(1), float("-inf")), -1
        ),
        ((4, 8, 512, 512),),
    ),
    "alibi softmax": (
        lambda x, s: F.softmax(
            x - s[:, None, None] * (torch.arange(512)[None, :] - torch.arange(512)[:, None]).abs(),
            -1,
        ),
        ((4, 8, 512, 512), (8,)),
    ),
    "rmsnorm residual": (
        lambda x, r, w: ((h := x + r) * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6) * w, h),
        ((4096, 1024), (4096, 1024), (1024,)),
    ),
    "layernorm gelu": (
        lambda x, w, b: F.gelu(F.layer_norm(x, (1024,), w, b)),
        ((2048, 1024), (1024,), (1024,)),
    ),
    "log softmax nll": (
        lambda x: -(F.log_softmax(x, -1) * F.softmax(x, -1)).sum(-1).mean(),
        ((1024, 1024),),
    ),
    "entropy": (lambda p: -(p * torch.log(p + 1e-9)).sum(-1), ((1024, 1024),)),
    "kl rows": (
        lambda x, y: F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="batchmean"),
        ((1024, 1024), (1024, 1024)),
    ),
    "huber": (lambda x, y: F.smooth_l1_loss(x, y), ((1024, 1024), (1024, 1024))),
    "contrastive": (
        lambda a, p, n: F.relu((a - p).pow(2).sum(-1) - (a - n).pow(2).sum(-1) + 1).mean(),
        ((4096, 256),) * 3,
    ),
    "dice": (
        lambda x, y: 1 - (2 * (x * y).sum((1, 2)) + 1) / (x.sum((1, 2)) + y.sum((1, 2)) + 1),
        ((64, 128, 128), (64, 128, 128)),
    ),
    "focal": (
        lambda x, y: (
            (1 - torch.exp(-F.binary_cross_entropy_with_logits(x, y, reduction="none"))) ** 2
            * F.binary_cross_entropy_with_logits(x, y, reduction="none")
        ).mean(),
        ((1024, 1024), (1024, 1024)),
    ),
    "cumsum rows norm": (lambda x: x.cumsum(-1) / x.sum(-1, keepdim=True), ((1024, 1024),)),
    "cumsum cols": (lambda x: x.cumsum(0), ((1024, 1024),)),
    "exclusive cumsum": (lambda x: x.cumsum(-1) - x, ((1024, 1024),)),
    "reverse cumsum": (lambda x: x.flip(-1).cumsum(-1).flip(-1), ((1024, 1024),)),
    "ema scan": (
        lambda x: (
            torch.cumsum(x * torch.exp(torch.arange(1024) * 0.01), -1)
            * torch.exp(-torch.arange(1024) * 0.01)
        ),
        ((1024, 1024),),
    ),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, -1), ((1024, 1024),)),
    "argmax": (lambda x: x.argmax(-1), ((4096, 512),)),
    "max values idx": (lambda x: x.max(-1), ((4096, 512),)),
    "argmax cols": (lambda x: x.argmax(0), ((4096, 512),)),
    "topk": (lambda x: x.topk(8, -1), ((1024, 512),)),
    "sort": (lambda x: x.sort(-1), ((1024, 512),)),
    "median": (lambda x: x.median(-1).values, ((1024, 512),)),
    "one hot": (
        lambda x: F.softmax(x, -1).argmax(-1, keepdim=True) == torch.arange(512),
        ((1024, 512),),
    ),
    "diff": (lambda x: x[:, 1:] - x[:, :-1], ((1024, 1024),)),
    "diff rows": (lambda x: x[1:] - x[:-1], ((1024, 1024),)),
    "laplacian": (
        lambda x: x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1] - 4 * x[1:-1, 1:-1],
        ((1024, 1024),),
    ),
    "roll add": (lambda x: x + x.roll(1, -1) + x.roll(1, 0), ((1024, 1024),)),
    "roll1": (lambda x: x.roll(1, -1), ((1024, 1024),)),
    "roll0": (lambda x: x.roll(300, 0) * 2, ((1024, 1024),)),
    "roll swin": (lambda x: x.roll((-3, -3), (1, 2)), ((8, 56, 56, 96),)),
    "stride slice": (lambda x: x[::2, ::2] * 2, ((2048, 2048),)),
    "even odd": (lambda x: x[:, ::2] + x[:, 1::2], ((1024, 2048),)),
    "interleave": (lambda x, y: torch.stack([x, y], -1).flatten(-2), ((1024, 1024), (1024, 1024))),
    "cat rows": (lambda x, y: torch.cat([x, y * 2], 0), ((1024, 1024), (512, 1024))),
    "cat cols": (lambda x, y: torch.cat([x, y * 2], 1), ((1024, 1000), (1024, 300))),
    "tril": (lambda x: x.tril() * 2, ((1024, 1024),)),
    "diag add": (lambda x: x + torch.eye(1024), ((1024, 1024),)),
    "outer": (lambda a, b: torch.outer(a, b), ((2048,), (1024,))),
    "pairwise L1": (lambda x, y: (x[:, None] - y[None]).abs().sum(-1), ((512, 64), (512, 64))),
    "cdist small": (
        lambda x, y: torch.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)),
        ((1024, 3), (1024, 3)),
    ),
    "rbf": (lambda x, y: torch.exp(-((x[:, None] - y[None]) ** 2).sum(-1)), ((512, 8), (512, 8))),
    "quantile-like": (lambda x: (x > x.mean(-1, keepdim=True)).float().mean(-1), ((1024, 1024),)),
    "zscore all": (lambda x: (x - x.mean()) / x.std(), ((1024, 1024),)),
    "minmax all": (lambda x: (x - x.min()) / (x.max() - x.min()), ((1024, 1024),)),
    "minmax rows": (
        lambda x: (
            (x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True))
        ),
        ((1024, 1024),),
    ),
    "whiten mean of other": (lambda x, m: x - m.mean(0), ((4096, 512), (100, 512))),
    "row scale by other sum": (lambda x, y: x * y.sum(1)[:, None], ((1024, 1024), (1024, 700))),
    "col scale by row sum": (lambda x, y: x * y.sum(1), ((300, 1024), (1024, 700))),
    "batch norms mix": (lambda x, y: x / x.norm() + y / y.norm(), ((1024, 1024), (1024, 1024))),
    "sinkhorn 3": (
        lambda x: (lambda f: f(f(f(torch.exp(x)))))(
            lambda k: (
                (k / k.sum(-1, keepdim=True)) / (k / k.sum(-1, keepdim=True)).sum(-2, keepdim=True)
            )
        ),
        ((64, 128, 128),),
    ),
    "gru gates": (
        lambda g, h: (
            (1 - torch.sigmoid(g[:, :512]))
            * torch.tanh(g[:, 512:1024] + torch.sigmoid(g[:, 1024:]) * h)
            + torch.sigmoid(g[:, :512]) * h
        ),
        ((1024, 1536), (1024, 512)),
    ),
    "lstm cell": (
        lambda g, c: (
            lambda i, f, o, u: (lambda cn: (torch.sigmoid(o) * torch.tanh(cn), cn))(
                torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            )
        )(*g.chunk(4, -1)),
        ((1024, 2048), (1024, 512)),
    ),
    "adamw": (
        lambda p, g, m, v: (lambda m2, v2: (p * 0.99 - 0.001 * m2 / (v2.sqrt() + 1e-8), m2, v2))(
            0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        ),
        ((1024, 1024),) * 4,
    ),
    "lamb": (lambda p, g: p - 0.01 * g * (p.norm() / g.norm()), ((1024, 1024), (1024, 1024))),
    "int8 quant rows": (
        lambda x: (
            torch.round(x / (x.abs().amax(-1, keepdim=True) / 127)).clamp(-128, 127).to(torch.int8)
        ),
        ((1024, 1024),),
    ),
    "half softmax": (lambda x: F.softmax(x.half().float(), -1).half(), ((1024, 1024),)),
    "masked mean": (
        lambda x, m: (x * (m > 0)).sum(1) / (m > 0).sum(1),
        ((64, 512, 256), (64, 512, 1)),
    ),
    "avg pool 1d": (lambda x: F.avg_pool1d(x, 5, 2, 2), ((64, 64, 1024),)),
    "lp pool": (lambda x: F.lp_pool2d(x, 2, 2), ((16, 64, 56, 56),)),
    "dropout eval": (lambda x: F.dropout(F.elu(x), 0.5, False), ((1024, 1024),)),
    "mish": (lambda x: F.mish(x), ((2048, 2048),)),
    "gelu": (lambda x: F.gelu(x), ((2048, 2048),)),
    "patchify": (
        lambda x: x.view(8, 3, 14, 16, 14, 16).permute(0, 2, 4, 1, 3, 5).reshape(8, 196, 768),
        ((8, 3, 224, 224),),
    ),
    "window partition": (
        lambda x: x.view(8, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, 96),
        ((8, 56, 56, 96),),
    ),
}

if __name__ == "__main__":
    main(CASES, __doc__)
