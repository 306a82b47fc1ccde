"""Writers that need no model: the deterministic one, and those that read what others wrote."""
