"""Language models: checkpoints as one decoder or encoder module, and tokens as text."""
