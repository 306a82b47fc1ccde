"""Suites, writers, a resumable runner, metrics and reports."""
