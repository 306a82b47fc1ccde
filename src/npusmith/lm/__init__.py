"""A small language model of tile programs, run by NumPy alone: text, tokens, weights, sampling."""
