"""Times at which records of a core were done, from the oldest that is asked for to the newest that is issued.

They lie in one piece, `Core.window`; `Core.done` points to where record 0 would be. A program of any length
needs no more than the reach of its dependencies and what its pipes have in their queues.
"""

from ascendtile.simulator.timing.engine._state cimport Core, World

cdef void look_ahead(World* world, Core* core) noexcept nogil
