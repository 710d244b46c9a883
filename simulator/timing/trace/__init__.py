"""Records of instructions, as lowering makes them and the engine reads them."""
