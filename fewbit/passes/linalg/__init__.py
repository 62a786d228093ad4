"""Passes that turn ops into loops over tensors."""
