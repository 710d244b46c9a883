"""Buffers as the vendor's compiler makes them (AscendNPU-IR): rewrites, broadcasts, scratch, second copies, the planner."""
