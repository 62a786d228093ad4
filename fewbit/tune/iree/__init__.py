"""Tiles for IREE's code generator, put into its dispatches as configurations."""
