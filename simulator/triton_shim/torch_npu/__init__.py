"""torch on the simulated device: the names `npu` and `cuda`, `torch.npu`, `torch_npu`, and the clock that events read."""
