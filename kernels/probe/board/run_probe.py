"""Runs the experiments of this folder on the board and keeps what they give, bit by bit, in results/.

    python run_probe.py            # goes on where an earlier run stopped, and tries what failed once more
    python run_probe.py --again    # everything from the start
    python run_probe.py --numpy    # without torch, which the simulator does not need and a board does

It needs torch with torch_npu, Triton-Ascend and numpy. A kernel that fails is noted and the others go on; one
that ends the process is passed over when the script is started again. Results hold bits
of the outputs, names of the data types, of the product and of versions, and nothing else of the machine.
"""

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
WORDS = {"fp32": np.uint32, "int32": np.int32, "fp16": np.uint16, "bf16": np.uint16}
MOST_TEXT = 2000  # characters of an error that are kept
ENDED = "the process ended while this kernel ran (--again tries it once more)"


def optional(name):
    try:
        return importlib.import_module(name)
    except Exception:  # torch_npu without a board raises more than ImportError
        return None


torch = torch_npu = None
if "--numpy" not in sys.argv[1:]:
    torch, torch_npu = optional("torch"), optional("torch_npu")
sys.path.insert(0, str(HERE))


def on_board():
    return torch is not None and hasattr(torch, "npu") and torch.npu.is_available()


def tensor(words, dtype):
    """Bits as an array that a kernel takes: a tensor of torch, or without torch what numpy has."""
    if torch is None:
        import ml_dtypes

        types = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "int32": np.int32}
        return words.copy().view(types[dtype])
    types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "int32": torch.int32}
    signed = torch.from_numpy(words.copy().view(np.int16 if words.itemsize == 2 else np.int32))
    made = signed.view(types[dtype])
    return made.npu() if on_board() else made


def bits(array, dtype):
    if torch is not None:
        array = array.cpu()
        array = array.view(torch.int16 if array.element_size() == 2 else torch.int32).numpy()
    return np.ascontiguousarray(array).view(WORDS[dtype])


def product():
    try:
        if on_board():
            return str(torch.npu.get_device_name(0))
        import triton

        return str(triton.runtime.driver.active.get_current_target().arch)
    except Exception as e:
        return f"unknown ({type(e).__name__})"


def versions():
    found = {"python": sys.version.split()[0], "numpy": np.__version__}
    for name, module in (("torch", torch), ("torch_npu", torch_npu), ("triton", optional("triton"))):
        found[name] = str(getattr(module, "__version__", "none"))
    return found


def launch(experiment, inputs):
    """Bits of the outputs by name."""
    kernels = importlib.import_module("probe_kernels")
    given = [tensor(inputs[name], dtype) for name, dtype in experiment["inputs"]]
    outs = [tensor(inputs[name], dtype) for name, dtype in experiment["outputs"]]
    kernel = getattr(kernels, experiment["kernel"])
    kernel[tuple(experiment["grid"])](*given, *outs, **experiment["constants"])
    if on_board():
        torch.npu.synchronize()
    return {name: bits(out, dtype) for out, (name, dtype) in zip(outs, experiment["outputs"], strict=True)}


def about(experiment, error):
    note = {"experiment": experiment["name"], "digest": experiment["digest"], "error": error[:MOST_TEXT]}
    note |= {"outputs": experiment["outputs"], "product": product(), "versions": versions()}
    return np.frombuffer(json.dumps(note).encode(), np.uint8)


def run(experiment, path):
    """One result file: bits of the outputs, or the message of what went wrong."""
    found, error = {}, ""
    try:
        with np.load(HERE / "inputs" / f"{experiment['name']}.npz", allow_pickle=False) as data:
            found = launch(experiment, dict(data))
    except Exception as e:
        error = f"{type(e).__name__}: {e}"
    save(path, experiment, found, error)
    return error


def save(path, experiment, found, error):
    beside = path.with_suffix(".part.npz")
    np.savez(beside, about=about(experiment, error), **found)
    os.replace(beside, path)  # in one step: a result is whole or not there


def finished(path):
    """Whether there is a result without an error."""
    try:
        with np.load(path, allow_pickle=False) as data:
            return not json.loads(data["about"].tobytes())["error"]
    except Exception:  # not there, or half of one
        return False


def attempt(experiment, path):
    """`run`, with a mark while it lasts: a kernel that took the process with it is not launched again."""
    mark = path.with_suffix(".started")
    if mark.exists():
        save(path, experiment, {}, ENDED)
        return ENDED
    mark.touch()
    error = run(experiment, path)
    mark.unlink()
    return error


def main():
    experiments = json.loads((HERE / "experiments.json").read_text(encoding="utf-8"))["experiments"]
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    again, failed = "--again" in sys.argv[1:], 0
    for number, experiment in enumerate(experiments, 1):
        path = results / f"{experiment['name']}.npz"
        if again:
            path.with_suffix(".started").unlink(missing_ok=True)
        elif finished(path):
            continue
        error = attempt(experiment, path)
        failed += bool(error)
        print(
            f"{number:3} of {len(experiments)}  {experiment['name']:<28} {error.splitlines()[0][:90] if error else 'done'}"
        )
    print(
        f"{failed} failed; results are in {results.name}/"
        if failed
        else f"all done; results are in {results.name}/"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
