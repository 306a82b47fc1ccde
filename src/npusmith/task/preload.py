"""What boxed Python of ours needs: loaded once, before any of it runs (sandbox/server.py).

PyTorch, what torch.export loads at its first call, and the modules that run a task or a candidate.
Nothing here computes: a thread that PyTorch started would not be there in the boxes.
"""

import torch
import torch._dynamo
import torch.export._trace

from npusmith.task import called, captured, captured_intermediates, child
from npusmith.task.isolated import start

__all__ = ["called", "captured", "captured_intermediates", "child", "start", "torch"]
