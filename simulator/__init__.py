"""One kernel on one device: values, errors, cycles and buffer fit."""

if __name__ == "simulator":
    raise ImportError("import ascendtile.simulator: the folder simulator/ is only the source of that package")
