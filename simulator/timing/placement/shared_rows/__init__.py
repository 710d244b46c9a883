"""Which axis of the tiles of a program with products its two Vector cores share, and the tiles as one of them has them."""
