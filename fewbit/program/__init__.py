"""A program and its parts: weights by reference, signature, state; and the artifact made of it."""
