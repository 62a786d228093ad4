"""Simulators of processors and accelerators."""
