"""Kernels on integers: bytes in, exact 32-bit sums, and what becomes of those."""
