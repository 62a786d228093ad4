"""Programs that boot: what those of microcontrollers and of accelerator cores have in common."""
