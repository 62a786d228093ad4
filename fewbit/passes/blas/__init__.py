"""Matmuls as calls of a BLAS library."""
