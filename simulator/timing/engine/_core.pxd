"""One core of the machine: scalar stages issue, queues hold, pipes execute.

A core is computed ahead of the clock as far as its inputs are known: only a transfer, whose end depends on
the other cores, waits for the clock.
"""

from ascendtile.simulator.timing.engine._state cimport Core, World

cdef void begin_program(World* world, Core* core, double start) noexcept nogil
cdef void advance(World* world, Core* core) noexcept nogil
cdef void end_transfer(World* world, Core* core, int pipe) noexcept nogil
cdef void end_barrier(World* world, Core* core, int pipe) noexcept nogil
