"""Passes, in the order in which a program meets them; one per file, under its own name."""
