"""What the passes on layout share: transposes that sink, reshapes, and loops in another order."""
