"""Names that an answer has no use for, and what each of them is a sign of."""

from __future__ import annotations

# Module, and all below it -> cheat. An import of it is enough.
MODULES = {
    "ctypes": "native_code",
    "cffi": "native_code",
    "_ctypes": "native_code",
    "mmap": "native_code",
    "posix": "sandbox_escape",
    "torch.utils.cpp_extension": "native_code",
    "torch.utils.dlpack": "native_code",
    "cupy": "native_code",
    "subprocess": "sandbox_escape",
    "multiprocessing": "sandbox_escape",
    "torch.multiprocessing": "sandbox_escape",
    "socket": "sandbox_escape",
    "urllib": "sandbox_escape",
    "http": "sandbox_escape",
    "requests": "sandbox_escape",
    "shutil": "sandbox_escape",
    "tempfile": "sandbox_escape",
    "pickle": "sandbox_escape",
    "shelve": "sandbox_escape",
    "atexit": "sandbox_escape",
    "threading": "thread_escape",
    "_thread": "thread_escape",
    "concurrent": "thread_escape",
    "asyncio": "thread_escape",
    "unittest.mock": "function_replaced",
    "bdb": "stack_read",
    "pdb": "stack_read",
    "torch.overrides": "harness_tampered",
    "torch.utils._python_dispatch": "harness_tampered",
    "torch.utils._pytree": "harness_tampered",
}
OWN = "ascendtile"
PUBLIC = ("ascendtile", "ascendtile.simulator", "ascendtile.simulator.language")
PUBLIC_NAMES = (
    "jit",
    "cdiv",
    "language",
    "triton_shim",
    "constexpr",
    "next_power_of_2",
)  # of ascendtile.simulator
REFERENCES = (
    "reference",
    "reference_model",
    "ref",
    "task",
    "solution",
    "baseline",
    "kernelbench",
    "src.kernelbench",
)
MODEL = "Model"

# Full name -> cheat, wherever it is written, called or not.
NAMES = {
    "sys._getframe": "stack_read",
    "sys._current_frames": "stack_read",
    "sys.settrace": "stack_read",
    "sys.setprofile": "stack_read",
    "sys.addaudithook": "stack_read",
    "sys.modules": "harness_tampered",
    "sys.meta_path": "harness_tampered",
    "sys.path_hooks": "harness_tampered",
    "sys.exit": "sandbox_escape",
    "gc.get_objects": "stack_read",
    "gc.get_referrers": "stack_read",
    "gc.get_referents": "stack_read",
    "inspect.stack": "stack_read",
    "inspect.currentframe": "stack_read",
    "inspect.getouterframes": "stack_read",
    "inspect.getinnerframes": "stack_read",
    "inspect.trace": "stack_read",
    "traceback.walk_stack": "stack_read",
    "traceback.walk_tb": "stack_read",
    "os.system": "sandbox_escape",
    "os.popen": "sandbox_escape",
    "os.fork": "sandbox_escape",
    "os.kill": "sandbox_escape",
    "os._exit": "sandbox_escape",
    "os.listdir": "sandbox_escape",
    "os.walk": "sandbox_escape",
    "os.scandir": "sandbox_escape",
    "os.open": "sandbox_escape",
    "os.remove": "sandbox_escape",
    "os.dup": "sandbox_escape",
    **dict.fromkeys(
        (
            f"os.{n}"
            for n in ("read", "pread", "preadv", "readv", "lseek", "fdopen", "fstat", "sendfile", "splice")
        ),
        "sandbox_escape",
    ),
    "os.dup2": "sandbox_escape",
    "io.open": "sandbox_escape",
    "builtins.open": "sandbox_escape",
    "torch.save": "sandbox_escape",
    "torch.load": "sandbox_escape",
    "torch.from_file": "sandbox_escape",
    "numpy.save": "sandbox_escape",
    "numpy.load": "sandbox_escape",
    "numpy.memmap": "sandbox_escape",
    "importlib.reload": "harness_tampered",
    "importlib.util.spec_from_file_location": "reference_imported",
    "runpy.run_path": "reference_imported",
    "linecache.cache": "harness_tampered",
    "types.CodeType": "hidden_code",
    "types.FunctionType": "hidden_code",
    "marshal.loads": "hidden_code",
    "builtins.exec": "hidden_code",
    "builtins.eval": "hidden_code",
    "builtins.compile": "hidden_code",
    "builtins.__import__": "hidden_code",
    "torch._C": "harness_tampered",
}
BUILTINS = {  # where the answer has no such name of its own
    "exec": "hidden_code",
    "eval": "hidden_code",
    "compile": "hidden_code",
    "__import__": "hidden_code",
    "__builtins__": "hidden_code",
    "open": "sandbox_escape",
    "breakpoint": "stack_read",
    "dir": "hidden_code",
    "vars": "hidden_code",
}
# Attribute of anything -> cheat.
ATTRIBUTES = {
    **dict.fromkeys(
        ("f_back", "f_globals", "f_locals", "f_builtins", "tb_frame", "gi_frame", "cr_frame", "ag_frame"),
        "stack_read",
    ),
    **dict.fromkeys(
        ("__globals__", "__closure__", "__code__", "__builtins__", "__subclasses__"), "hidden_code"
    ),
    # Of torch's storages: Python tells no hook of a file that is opened there.
    **dict.fromkeys(("from_file", "_new_shared_filename_cpu", "_new_using_fd_cpu"), "sandbox_escape"),
    **dict.fromkeys(("_make_subclass", "_make_wrapper_subclass"), "lazy_output"),
    **dict.fromkeys(("_disable_current_modes", "_pop_mode", "_DisableTorchDispatch"), "harness_tampered"),
}
LAZY_METHODS = ("__torch_function__", "__torch_dispatch__")
# What may be set in modules of others: options, and the environment.
SETTINGS = (
    "torch.backends.",
    "os.environ",
    "torch._dynamo.config",
    "torch._inductor.config",
    "triton.knobs.",
)
# A name in one of these, or one of these names in anything: a clock.
CLOCKS = ("time", "timeit", "triton.testing")
CLOCK_NAMES = (
    "Event",
    "synchronize",
    "elapsed_time",
    "record",
    "do_bench",
    "do_bench_npu",
    "perf_counter",
    "time",
)
SETTERS = ("setattr", "delattr", "object.__setattr__", "type.__setattr__")
SEARCHED = (
    "sys",
    "os",
    "builtins",
    "importlib",
    "gc",
    "inspect",
    "torch._C",
)  # getattr with a name that is put together
