"""One interpreter of the tile program: scalars and index tiles symbolically, a backend for the rest."""
