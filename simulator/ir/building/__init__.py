"""How operations of the tile program are made: rules of promotion and shape, family by family."""
