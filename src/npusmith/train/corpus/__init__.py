"""The corpus: samples that were verified by running them, built in units that can be resumed."""
