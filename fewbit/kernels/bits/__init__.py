"""Kernels on bits: dot products of few-bit numbers by popcount."""
