"""WebAssembly: one module, a JavaScript module around it, and a page that shows it."""
