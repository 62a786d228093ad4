"""Language models: checkpoints as one decoder module, and tokens as text."""
