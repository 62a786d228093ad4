"""Kernels in Triton's language. Importing one imports Triton; `triton_source` does it late."""
