"""mHC, residual mix and post scale of one layer: n streams of a token are mixed by a small matrix.

Two conventions are in use. Transposed, as in cann-bench and TileKernels:
    y[i] = sum over k of h_res[k, i] * x[k] + h_post[i] * h_out
Plain, as in the paper (arXiv 2512.24880): h_res[i, k] in its place.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, streams: int, transposed: bool):
        super().__init__()
        self.streams, self.transposed = streams, transposed

    def forward(self, x, h_res, h_out, h_post):
        square = h_res.view(*h_res.shape[:-2], self.streams, self.streams)
        matrix = square.transpose(-1, -2) if self.transposed else square
        mixed = torch.matmul(matrix, x.float())
        scaled = h_post.unsqueeze(-1) * h_out.float().unsqueeze(-2)
        return (mixed + scaled).to(x.dtype)


def get_inputs(batch=2, tokens=25, streams=4, width=640, dtype=torch.bfloat16):
    lead = (batch, tokens)
    return [
        torch.randn(*lead, streams, width).to(dtype),
        torch.softmax(torch.randn(*lead, streams, streams), dim=-1),
        torch.randn(*lead, width).to(dtype),
        2.0 * torch.sigmoid(torch.randn(*lead, streams)),
    ]


def get_init_inputs():
    return [4, True]
