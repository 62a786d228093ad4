"""What programs cost, known beforehand: on CPUs, on cores with dot products, as loop nests."""
