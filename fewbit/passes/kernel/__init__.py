"""Passes on layers: kernels chosen, layouts propagated, neighbours fused, calls made."""
