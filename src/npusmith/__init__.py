"""npusmith: from a PyTorch module to a verified Ascend C operator, on any machine."""

__version__ = "0.1.0"
