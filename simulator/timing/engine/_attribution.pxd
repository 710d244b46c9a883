"""Which source lines a program's time belongs to."""

from ascendtile.simulator.timing.engine._state cimport Core, World

cdef void begin_charging(const World* world, Core* core) noexcept nogil
cdef bint lane_is_full(World* world, Core* core, int pipe) noexcept nogil
cdef double charge_rest(World* world, Core* core) noexcept nogil
