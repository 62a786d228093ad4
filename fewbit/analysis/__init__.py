"""What programs cost, and what quantization does to them."""
