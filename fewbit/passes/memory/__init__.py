"""Passes that turn tensors into memory of the caller."""
