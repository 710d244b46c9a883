"""The discrete-event engine: pipes, bandwidth, flags; it knows neither kernels nor products by name."""
