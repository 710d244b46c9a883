"""Which source lines a program's time belongs to."""

from ascendtile.simulator.timing._core cimport Core, World

cdef double charge_lines(const World* world, const Core* core, double* lines) noexcept nogil
