"""Few-bit layers of torch: fake quantization, training, calibration."""
