"""Kernels for vectors of 128 bits: lanes are output channels, so nothing is added across lanes."""
