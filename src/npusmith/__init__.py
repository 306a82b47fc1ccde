"""npusmith: from a PyTorch module to a verified Ascend C operator, on any machine."""

import importlib
from typing import TYPE_CHECKING, Any

from npusmith.version import __version__

if TYPE_CHECKING:
    from npusmith.api import Operator, benchmark, generate, judge, load, operator, profile
    from npusmith.torch_backend import Part, backend, coverage

_BACKEND = ("Part", "backend", "coverage")  # of torch.compile
__all__ = [
    "Operator",
    "Part",
    "__version__",
    "backend",
    "benchmark",
    "coverage",
    "generate",
    "judge",
    "load",
    "operator",
    "profile",
]


def __getattr__(name: str) -> Any:
    """What is loaded when it is asked for: the command line starts faster without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    home = importlib.import_module(f"npusmith.{'torch_backend' if name in _BACKEND else 'api'}")
    return getattr(home, name)
