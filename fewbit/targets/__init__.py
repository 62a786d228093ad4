"""Where programs run, and whether they can run there on this machine."""
