"""For all tests: no example is judged by how long it takes, on a busy machine any of them may take seconds."""

from hypothesis import settings

settings.register_profile("ascendtile", deadline=None)
settings.load_profile("ascendtile")
