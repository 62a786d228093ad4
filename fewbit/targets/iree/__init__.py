"""Programs for IREE: its compiler is called, and its runtime runs what comes out."""
