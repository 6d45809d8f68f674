"""C for RISC-V vector cores: so far scalar functions lift to the form; no target is registered yet."""
