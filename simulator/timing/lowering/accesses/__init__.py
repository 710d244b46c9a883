"""How accesses to global memory that are no strided copy of a box are lowered."""
