"""`triton.autotune` and `triton.heuristics`: the candidate with the least simulated time, values computed by rule.

A candidate is timed without values, so that nothing is written and any number of them costs little; where time depends on
data it runs on copies of the tensors. One that does not fit, or does not compile, is listed with its reason.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..device import TRITON_ASCEND, USUAL_RELEASE, current_device, device
from ..errors import AscendtileError, NeedsDataError, UsageError
from ..interpreter.tensors import as_array
from ..observers import quietly
from ..progress import trying
from .candidates import candidates
from .config import Config, Ranking, Trial
from .kernel import JITFunction, KernelInterface

PRINT = "TRITON_PRINT_AUTOTUNING"
PROFILING = ("do_bench", "auto_prof_dir", "auto_profile_dir")
MEASURING = ("warmup", "rep", "use_cuda_graph", "cache_results", *PROFILING)
# Now in `hints`.
OLD_HINTS = ("split_params", "tiling_params", "low_dims", "dual_reduction", "persistent_reduction")


class Autotuner(KernelInterface):
    """A kernel with candidates: for each new value of `key` all are timed and the best one is kept.

    After a launch: `best_config`; `ranking`, the `Trial`s of the last choice, best first; `rankings`, those of every key;
    `cache`, key -> best candidate; `configs_timings`, candidate -> [milliseconds] as Triton has it.
    """

    def __init__(
        self,
        fn: KernelInterface,
        configs: Sequence[Config] | None,
        key: Sequence[str] | Mapping[str, Any] | None = None,
        *,
        prune_configs_by: Mapping[str, Any] | None = None,
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        hints: Mapping[str, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.base_fn = base_function(fn)
        self.arg_names = list(self.base_fn.arg_names)
        self.__name__ = self.base_fn.name
        self.configs = list(configs or []) or [Config({})]
        self.generated, self.key, self.hints = not configs, key, dict(hints or {})
        self.keys = list(key.values()) if isinstance(key, Mapping) else list(key or [])
        self.reset_to_zero = list(reset_to_zero or [])
        self.restore_value = list(restore_value or [])
        self.pre_hook, self.post_hook = pre_hook, post_hook
        prune = dict(prune_configs_by or {})
        self.early_config_prune = prune.get("early_config_prune")
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.rankings: dict[tuple[Any, ...], Ranking] = {}
        self.ranking = Ranking.of(self.__name__, ())
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, list[float]] = {}
        self.nargs: dict[str, Any] | None = None
        for name in (*self.reset_to_zero, *self.restore_value):
            self._check(name)

    def _check(self, name: str) -> None:
        if name not in self.arg_names:
            raise UsageError(
                f"autotune of {self.__name__}: {name!r} is no parameter; it has {', '.join(self.arg_names)}"
            )

    # -- a launch ----------------------------------------------------------------------------------------------------

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch with the best candidate for these arguments."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            config = self._choose(args, kwargs, grid)
            self.best_config = config
            full = {**self.nargs, **kwargs, **config.all_kwargs()}
            if config.pre_hook is not None:
                config.pre_hook(full)
            return self.fn.run(*args, grid=grid, warmup=warmup, **{**kwargs, **config.all_kwargs()})
        finally:
            self.nargs = None

    def _choose(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> Config:
        key = self._key({**(self.nargs or {}), **kwargs})
        if self.generated and key not in self.cache:
            self._generate(kwargs, grid)
        if len(self.configs) == 1:
            return self.configs[0]
        if key not in self.cache:
            self._keep(key, self._trials(args, kwargs, grid))
            self._before({**(self.nargs or {}), **kwargs}, reset_only=True)
        self.ranking = self.rankings[key]
        return self.cache[key]

    def _generate(self, kwargs: dict[str, Any], grid: Any) -> None:
        """Candidates for what is missing; one without values, as in Triton, where nothing is."""
        given = {**(self.nargs or {}), **kwargs}
        computed = _computed(self.fn)
        needed = [p.name for p in self.base_fn.params if p.is_constexpr and not p.has_default]
        missing = [n for n in needed if n not in given and n not in computed]
        made = candidates(self.base_fn, self.key, self.hints, given, missing, grid) if missing else []
        self.configs = made or [Config({})]

    def _key(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """Values of the key arguments, and the types of all tensors, as Triton has it; besides, an unusual compiler."""
        key = [given.get(name) for name in self.keys]
        made = current_device().code_by()
        key += [made] * (made != f"{TRITON_ASCEND} {USUAL_RELEASE}")
        types = [str(x.dtype) for name, x in given.items() if name in self.arg_names and hasattr(x, "dtype")]
        return tuple(x if isinstance(x, bool | int | float | str | None) else repr(x) for x in (*key, *types))

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The candidates that are timed: those that `early_config_prune` leaves, the `top_k` best of `perf_model`."""
        kept, nargs = self.configs, self.nargs or {}
        if self.early_config_prune:
            kept = list(self.early_config_prune(kept, nargs, **kwargs))
            if not kept:
                raise UsageError(
                    f"autotune of {self.__name__}: early_config_prune left none of {len(self.configs)} candidates"
                )
        if self.perf_model:
            top = self.configs_top_k
            top = int(len(self.configs) * top) if isinstance(top, float) and top <= 1.0 else int(top)
            model = self.perf_model
            if len(kept) > top:
                kept = sorted(kept, key=lambda c: model(**nargs, **kwargs, **c.all_kwargs()))[: max(1, top)]
        return kept

    def _trials(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> list[Trial]:
        """All candidates, timed one after another; TRITON_PRINT_AUTOTUNING=1 shows each as it comes."""
        configs, out = self.prune_configs(kwargs), []
        for number, config in enumerate(configs, 1):
            with trying(number, len(configs)):
                trial = self._trial(config, args, kwargs, grid)
            out.append(trial)
            if os.environ.get(PRINT) == "1":
                verdict = trial.reason if trial.time_us is None else f"{trial.time_us:.3f} us"
                head = f"autotune of {self.__name__}: candidate {number} of {len(configs)}, {config}"
                print(f"{head}: {verdict}", file=sys.stderr, flush=True)
        return out

    # -- a candidate -------------------------------------------------------------------------------------------------

    def _trial(self, config: Config, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> Trial:
        clash = set(config.kwargs) & set(kwargs)
        if clash:
            raise UsageError(
                f"autotune of {self.__name__}: {sorted(clash)[0]!r} is given at the launch and by the candidate {config}"
            )
        given = {**kwargs, **config.all_kwargs()}
        try:
            with quietly():
                run = self._timed(config, args, given, grid)
        except AscendtileError as e:
            reason = str(e).splitlines()[0].removesuffix(" Alive at the peak:")
            return Trial(config, None, reason=reason, error=e.with_traceback(None))
        return Trial(config, run.time_us, run.cycles)

    def _timed(self, config: Config, args: tuple[Any, ...], given: dict[str, Any], grid: Any) -> Any:
        try:
            with device(values=False, time=True):
                return self._launched(config, args, given, grid)
        except NeedsDataError:
            args, given = tuple(copy_of(x) for x in args), {n: copy_of(x) for n, x in given.items()}
            with device(values=True, time=True):
                return self._launched(config, args, given, grid)

    def _launched(self, config: Config, args: tuple[Any, ...], given: dict[str, Any], grid: Any) -> Any:
        """One launch with the hooks around it. Nothing of the caller's is written, so `restore_value` has no work."""
        full = {**dict(zip(self.arg_names, args, strict=False)), **given}
        if config.pre_hook is not None:
            config.pre_hook(full)
        self._before(full, reset_only=False)
        try:
            run = self.fn.run(*args, grid=grid, warmup=False, **given)
        except AscendtileError as e:
            self._after(full, e)
            raise
        self._after(full, None)
        return run

    def _before(self, full: dict[str, Any], reset_only: bool) -> None:
        """The hook, or zeros in the tensors of `reset_to_zero`; before a candidate and, once one is chosen, the launch."""
        if self.pre_hook is not None:
            takes = inspect.signature(self.pre_hook).parameters
            self.pre_hook(full, reset_only=reset_only) if "reset_only" in takes else self.pre_hook(full)
        elif current_device().values:
            for name in self.reset_to_zero:
                set_to_zero(full.get(name))

    def _after(self, full: dict[str, Any], error: Exception | None) -> None:
        if self.post_hook is not None:
            takes = inspect.signature(self.post_hook).parameters
            self.post_hook(full, exception=error) if len(takes) > 1 else self.post_hook(full)

    # -- the ranking -------------------------------------------------------------------------------------------------

    def _keep(self, key: tuple[Any, ...], trials: list[Trial]) -> None:
        ranking = Ranking.of(self.__name__, trials)
        if ranking[0].time_us is None:
            if ranking[0].error and len({t.reason for t in ranking}) == 1:
                raise ranking[0].error  # it does not lie in the candidates
            reasons = "\n".join(f"  {t.config}: {t.reason}" for t in ranking)
            raise UsageError(
                f"autotune of {self.__name__}: none of {len(ranking)} candidates can run:\n{reasons}"
            )
        self.cache[key] = ranking[0].config
        self.rankings[key] = ranking
        self.configs_timings = {
            t.config: [float("inf") if t.time_us is None else t.time_us / 1000] for t in ranking
        }
        if os.environ.get(PRINT) == "1":
            self.ranking = ranking
            sys.stderr.write(self.ranking_text() + "\n")

    def ranking_text(self) -> str:
        """The last choice as a table: simulated time, candidate, or why it cannot run."""
        return repr(self.ranking)


class Heuristics(KernelInterface):
    """A kernel some of whose compile-time arguments are computed from the others: name -> function of all by name."""

    def __init__(self, fn: KernelInterface, values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        self.fn = fn
        self.values = dict(values)
        self.base_fn = base_function(fn)
        self.arg_names = list(self.base_fn.arg_names)
        self.__name__ = self.base_fn.name

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch with the computed values; one that is computed later sees those before it."""
        for name, rule in self.values.items():
            kwargs[name] = rule({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)


def base_function(fn: Any) -> JITFunction:
    """The kernel inside of any number of tuners."""
    inner = fn
    while not isinstance(inner, JITFunction):
        inner = getattr(inner, "fn", None)
        if inner is None:
            raise UsageError(f"a tuner goes around a kernel, put it above @triton.jit; got {fn!r}")
    return inner


def _computed(fn: Any) -> set[str]:
    """Parameters that rules between the tuner and its kernel compute."""
    out: set[str] = set()
    while not isinstance(fn, JITFunction):
        out |= set(getattr(fn, "values", ()))
        fn = fn.fn
    return out


def copy_of(x: Any) -> Any:
    """A copy of a tensor argument, anything else as it is."""
    if as_array("argument", x) is None:
        return x
    return x.detach().clone() if hasattr(x, "detach") else x.copy()


def set_to_zero(x: Any) -> None:
    """Zeros in a tensor argument; nothing to do where there is none."""
    if x is not None:
        x.zero_() if hasattr(x, "zero_") else x.fill(0)


def autotune(configs: Sequence[Config], key: Any = None, **options: Any) -> Callable[[Any], Autotuner]:
    """`triton.autotune`. warmup, rep, use_cuda_graph, do_bench and cache_results concern measuring and are not needed."""
    taken = ("prune_configs_by", "reset_to_zero", "restore_value", "pre_hook", "post_hook", "hints")
    for name in options:
        if name not in (*taken, *MEASURING, *OLD_HINTS):
            raise UsageError(f"autotune has no option {name!r}; it has {', '.join((*taken, *MEASURING))}")
    old = {n: options[n] for n in OLD_HINTS if n in options}
    given = {n: x for n, x in options.items() if n in taken}
    return lambda fn: Autotuner(fn, configs, key, **{**given, "hints": {**old, **(given.get("hints") or {})}})


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """`triton.heuristics`."""
    return lambda fn: Heuristics(fn, values)
