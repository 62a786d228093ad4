"""What bare-metal programs carry: their interface, and what no system provides."""
