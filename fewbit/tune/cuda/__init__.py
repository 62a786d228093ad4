"""The search on NVIDIA GPUs: what may be chosen, how it is prepared, measured and kept."""
