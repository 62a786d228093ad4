"""Measuring compiled programs beside those of other tools, in one run."""
