"""Whether operators of other libraries than ops-nn and ops-math compute what PyTorch does.

    python runs/library_values_other.py --root CHECKOUT [--root CHECKOUT] [NAME ...]

Tests as in `runs/library_values.py`, for operators of ops-cv and ops-transformer (every fourth),
mat-chem-sim-pred, vllm-ascend and DrivingSDK (operators whose outputs nobody has to fill before).
Of each library all operators for Atlas A2 are looked at, and those tried for which a test is
written here.
"""

from __future__ import annotations

import library_values as values
import torch
import torch.nn.functional as F
from library_values import I32, Case, draw, written


def resize(mode: str, size: tuple[int, ...], x: torch.Tensor, corners: bool) -> torch.Tensor:
    return F.interpolate(x, size, mode=mode, align_corners=corners)


def resize_grad(
    mode: str, size: tuple[int, ...], shape: tuple[int, ...], corners: bool | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """A gradient of the resized tensor, and that of the one before."""
    x = draw(*shape).requires_grad_()
    y = F.interpolate(x, size, mode=mode, align_corners=corners)
    g = draw(*y.shape, seed=3)
    (dx,) = torch.autograd.grad(y, x, g)
    return g, dx


@written
def upsample_bicubic2d() -> Case:
    x = draw(2, 3, 13, 17)
    attrs = {"output_size": [20, 29], "align_corners": False, "scales_h": 0.0, "scales_w": 0.0}
    return Case([x], [resize("bicubic", (20, 29), x, False)], attrs)


@written
def upsample_bilinear2d() -> Case:
    x = draw(2, 3, 13, 17)
    attrs = {"align_corners": False, "scales": [0.0, 0.0]}
    size = torch.tensor([20, 29], dtype=I32)
    return Case([x, size], [resize("bilinear", (20, 29), x, False)], attrs)


@written
def upsample_linear1d() -> Case:
    x = draw(2, 3, 37)
    attrs = {"align_corners": False, "scale": 0.0}
    size = torch.tensor([61], dtype=I32)
    return Case([x, size], [resize("linear", (61,), x, False)], attrs)


@written
def upsample_nearest3d_grad() -> Case:
    g, dx = resize_grad("nearest", (6, 9, 14), (2, 3, 4, 5, 7), None)
    attrs = {"input_size": [2, 3, 4, 5, 7], "output_size": [6, 9, 14], "scales": [0.0, 0.0, 0.0]}
    return Case([g], [dx], attrs)


@written
def upsample_trilinear3d_backward() -> Case:
    g, dx = resize_grad("trilinear", (6, 9, 14), (2, 3, 4, 5, 7), False)
    attrs = {
        "output_size": [6, 9, 14], "input_size": [2, 3, 4, 5, 7], "align_corners": False,
        "scale_d": 0.0, "scale_h": 0.0, "scale_w": 0.0,
    }  # fmt: skip
    return Case([g], [dx], attrs)


@written
def add_rms_norm_bias() -> Case:
    a, b, w, c = draw(37, 144), draw(37, 144, seed=1), draw(144, seed=2), draw(144, seed=3)
    x = a + b
    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    return Case([a, b, w, c], [x * rstd * w + c, rstd, x], {"epsilon": 1e-5})


@written
def moe_gating_top_k_softmax() -> Case:
    x = draw(37, 96, low=-4, high=4)
    y, experts = torch.topk(torch.softmax(x, -1), 5)
    rows = torch.arange(37 * 5, dtype=I32).reshape(5, 37).t()
    return Case([x, None], [y, experts.to(I32), rows], {"k": 5})


@written
def moe_finalize_routing() -> Case:
    n, k, h, e = 23, 4, 96, 8
    expanded, skip1, skip2 = draw(n * k, h), draw(n, h, seed=1), draw(n, h, seed=2)
    bias, scales = draw(e, h, seed=3), draw(n, k, seed=4)
    made = torch.Generator().manual_seed(5)
    rows = torch.randperm(n * k, generator=made).to(I32)
    experts = torch.randint(0, e, (n, k), generator=made).to(I32)
    y = skip1 + skip2
    for j in range(k):
        y = y + scales[:, j : j + 1] * (
            expanded[rows.view(k, n)[j].long()] + bias[experts[:, j].long()]
        )
    return Case([expanded, skip1, skip2, bias, scales, rows, experts], [y])


@written
def moe_token_unpermute_grad() -> Case:
    n, k, h = 23, 4, 96
    permuted, g, probs = draw(n * k, h), draw(n, h, seed=1), draw(n, k, seed=2)
    rows = torch.randperm(n * k, generator=torch.Generator().manual_seed(5)).to(I32)
    wide = g.repeat_interleave(k, 0)
    dx = torch.empty_like(permuted)
    dx[rows.long()] = wide * probs.reshape(-1, 1)
    dp = (permuted[rows.long()] * wide).sum(-1).reshape(n, k)
    return Case([permuted, g, rows, probs], [dx, dp], {"padded_mode": False})


@written
def moe_token_permute_with_ep_grad() -> Case:
    n, k, h = 23, 4, 96
    g = draw(n * k, h)
    rows = torch.randperm(n * k, generator=torch.Generator().manual_seed(5)).to(I32)
    dp = draw(n * k, seed=1)
    dx = g[rows.long()].reshape(n, k, h).sum(1)
    attrs = {"num_topk": k, "range": [0, n * k], "padded_mode": False}
    return Case([g, rows, dp], [dx, dp[rows.long()].reshape(n, k)], attrs)


@written
def selective_scan_1d() -> Case:
    b, n, d, s = 2, 11, 16, 8
    u, delta = draw(b, n, d), draw(b, n, d, seed=1, low=0.0, high=0.5)
    a, bs, cs = draw(d, s, seed=2, high=0.0), draw(b, n, s, seed=3), draw(b, n, s, seed=4)
    skip = draw(d, seed=5)
    state, out = torch.zeros(b, d, s), []
    for t in range(n):
        step = delta[:, t, :, None]
        state = torch.exp(step * a) * state + step * bs[:, t, None] * u[:, t, :, None]
        out.append((state * cs[:, t, None]).sum(-1) + skip * u[:, t])
    attrs = {"batch": b, "length": n, "dim": d, "state": s}
    return Case([u, delta, a, bs, cs, skip], [torch.stack(out, 1)], attrs)


@written
def stack_group_points() -> Case:
    features = draw(12, 16)
    counts, groups = torch.tensor([5, 7], dtype=I32), torch.tensor([4, 6], dtype=I32)
    made = torch.Generator().manual_seed(5)
    index = torch.cat(
        [torch.randint(0, 5, (4, 3), generator=made), torch.randint(0, 7, (6, 3), generator=made)]
    )
    start = torch.tensor([0] * 4 + [5] * 6)
    y = features[index + start[:, None]].transpose(1, 2).contiguous()
    return Case([features, counts, index.to(I32), groups], [y])


@written
def add_relu() -> Case:
    x, y = draw(37, 133), draw(37, 133, seed=1)
    return Case([x, y], [torch.relu(x + y)])


@written
def fused_bias_leaky_relu_v2() -> Case:
    x, bias = draw(4, 32, 128), draw(4, 32, 128, seed=1)
    attrs = {"negative_slope": 0.2, "scale": 1.5}
    return Case([x, bias], [F.leaky_relu(x + bias, 0.2) * 1.5], attrs)


@written
def hypot() -> Case:
    x, y = draw(37, 133), draw(37, 133, seed=1)
    return Case([x, y], [torch.hypot(x, y)])


@written
def hypot_grad() -> Case:
    x, y, g = draw(37, 133), draw(37, 133, seed=1), draw(37, 133, seed=2)
    z = torch.hypot(x, y)
    return Case([x, y, z, g], [g * x / z, g * y / z])


@written
def max_pool2d() -> Case:
    x = draw(2, 64, 13, 18)
    y = F.max_pool2d(x, 3, 2, 1)
    return Case([x.permute(0, 2, 3, 1).contiguous()], [y.permute(0, 2, 3, 1).contiguous()])


@written
def furthest_point_sampling() -> Case:
    points, chosen = draw(3, 3, 217), torch.zeros(3, 19, dtype=I32)
    for batch in range(3):
        near, at = torch.full((217,), 1e10), 0
        for step in range(1, 19):
            away = (points[batch] - points[batch][:, at : at + 1]).square()
            near = torch.minimum(near, away[0] + away[1] + away[2])
            at = int(near.argmax())
            chosen[batch, step] = at
    return Case([points, torch.full((3, 217), 1e10)], [chosen], {"num_points": 19})


@written
def group_points() -> Case:
    b, c, n, m, k = 2, 24, 57, 13, 5
    points = draw(b, n, c)
    index = torch.randint(0, n, (b, m, k), generator=torch.Generator().manual_seed(5))
    y = torch.stack([points[i][index[i]] for i in range(b)])
    attrs = {"b": b, "c": c, "n": n, "npoints": m, "nsample": k}
    return Case([points, index.to(I32)], [y.reshape(b, c, m, k)], attrs)


@written
def fake_tensor_quant() -> Case:
    x, most = draw(37, 133), torch.tensor([1.7])
    scale = 127 / most
    y = torch.clamp(torch.round(x * scale), -127, 127) / scale
    return Case([x, most], [y], {"num_bits": 8, "is_unsigned": False, "narrow_range": True})


@written
def points_in_box() -> Case:
    boxes, points = draw(1, 31, 7, low=0.0, high=1.0), draw(1, 90, 3, low=0.0)
    found = torch.full((1, 90), -1, dtype=I32)
    for at in reversed(range(31)):
        x, y, z, dx, dy, dz, turn = boxes[0, at]
        near = points[0] - torch.stack([x, y, z])
        along = near[:, 0] * torch.cos(-turn) - near[:, 1] * torch.sin(-turn)
        across = near[:, 0] * torch.sin(-turn) + near[:, 1] * torch.cos(-turn)
        inside = (along.abs() < dx / 2) & (across.abs() < dy / 2) & (near[:, 2].abs() <= dz / 2)
        found[0, inside] = at
    return Case([boxes.transpose(1, 2).contiguous(), points], [found])


@written
def multi_scale_deformable_attn() -> Case:
    b, q, h, d, p = 2, 11, 4, 32, 4
    sizes = ((6, 8), (3, 4))
    value = draw(b, sum(y * x for y, x in sizes), h, d)
    places = draw(b, q, h, len(sizes), p, 2, seed=1, low=0.0, high=1.0)
    weights = torch.softmax(draw(b, q, h, len(sizes) * p, seed=2), -1).view(b, q, h, -1, p)
    out, start = torch.zeros(b, q, h, d), 0
    for level, (y, x) in enumerate(sizes):
        plane = value[:, start : start + y * x].permute(0, 2, 3, 1).reshape(b * h, d, y, x)
        grid = (2 * places[:, :, :, level] - 1).transpose(1, 2).reshape(b * h, q, p, 2)
        seen = F.grid_sample(plane, grid, align_corners=False).view(b, h, d, q, p)
        out += torch.einsum("bhdqp,bqhp->bqhd", seen, weights[:, :, :, level])
        start += y * x
    shapes, starts = torch.tensor(sizes, dtype=I32), torch.tensor([0, 48], dtype=I32)
    return Case([value, shapes, starts, places, weights], [out.reshape(b, q, h * d)])


if __name__ == "__main__":
    values.main(every=1)
