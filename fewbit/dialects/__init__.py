"""Our dialects, `mico`, `graph` and `kernel`, and what upstream's lack in xDSL."""
