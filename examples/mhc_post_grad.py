"""The four gradients of mHC's residual mix and post scale (see mhc_post.py), g that of its output.

Transposed, as in cann-bench and TileKernels:
    d_x[k] = sum over i of h_res[k, i] * g[i]       d_res[k, i] = x[k] . g[i]
Plain, as in the paper: h_res[i, k] and d_res[i, k]. In both:
    d_out = sum over i of h_post[i] * g[i]          d_post[i] = h_out . g[i]
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, streams: int, transposed: bool):
        super().__init__()
        self.streams, self.transposed = streams, transposed

    def forward(self, g, x, h_res, h_out, h_post):
        square = h_res.view(*h_res.shape[:-2], self.streams, self.streams)
        x = x.view(*x.shape[:-2], self.streams, x.shape[-1])
        wide, rows = g.float(), x.float()
        matrix = square if self.transposed else square.transpose(-1, -2)
        left, right = (rows, wide) if self.transposed else (wide, rows)
        d_x = torch.matmul(matrix, wide).to(x.dtype)
        d_res = torch.matmul(left, right.transpose(-1, -2))
        d_out = torch.matmul(h_post.unsqueeze(-2), wide).squeeze(-2).to(h_out.dtype)
        d_post = torch.matmul(wide, h_out.float().unsqueeze(-1)).squeeze(-1)
        return d_x, d_res, d_out, d_post


def get_inputs(batch=2, tokens=25, streams=4, width=640, dtype=torch.bfloat16):
    lead = (batch, tokens)
    return [
        torch.randn(*lead, streams, width).to(dtype),
        torch.randn(*lead, streams, width).to(dtype),
        torch.softmax(torch.randn(*lead, streams, streams), dim=-1),
        torch.randn(*lead, width).to(dtype),
        2.0 * torch.sigmoid(torch.randn(*lead, streams)),
    ]


def get_init_inputs():
    return [4, True]
