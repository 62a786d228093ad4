"""Parsing, printing, verifying, walking and rewriting modules; layers and their names."""
