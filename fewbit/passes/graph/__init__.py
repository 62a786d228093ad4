"""Passes on whole programs: calls, symbols, devices, and what can be computed beforehand."""
