"""Command streams: what is sent for a matmul, a convolution, and what stands between layers.

Buffers in DRAM have names, `x`, `weight`, `bias` and `y`, and get their places later.
"""
