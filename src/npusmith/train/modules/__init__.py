"""Random modules from a seed, what the compiler makes of them, and whether it is right."""
