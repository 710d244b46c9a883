"""The profiler of torch_npu: simulated times in the tables that it writes."""
