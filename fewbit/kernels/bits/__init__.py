"""Kernels on bits: products of few-bit numbers by counting the bits that both have."""
