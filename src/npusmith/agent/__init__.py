"""The writer that asks a model: clients, prompts, the loop from candidate to verdict to next."""
