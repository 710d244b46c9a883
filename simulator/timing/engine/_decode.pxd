"""What a core knows of the records to come: the trace is decoded in program order, a window ahead.

A scoreboard keeps for each slot who wrote it last and who has read it since, so that each record gets what it
waits for.
A program of any length needs no more than what its pipes have on their way.
"""

from ascendtile.simulator.timing.engine._state cimport Core, World

cdef void begin_decoding(Core* core) noexcept nogil
cdef void look_ahead(World* world, Core* core) noexcept nogil
