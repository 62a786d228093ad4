"""What compiled programs carry beside their kernels: interface, threads, dispatch, stubs."""
