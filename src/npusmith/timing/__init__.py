"""How long a kernel would take on the chip: estimates, never measurements."""
