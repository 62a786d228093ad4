"""The target `mcu`: static libraries for microcontrollers, which need nothing but memory."""
