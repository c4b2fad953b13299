"""Modules by the names under which programs import Horovod."""

import sys
import threading
import types
from typing import Any, Callable

import kolo.torch
from kolo.torch import compression, elastic, errors, mpi_ops, objects, optimizer, process_sets
from kolo.torch import sync_batch_norm

VERSION = "0.28.1"  # of Horovod, whose API kolo.torch has


def _module(name: str, doc: str, **content: Any) -> types.ModuleType:
    module = types.ModuleType(name, doc)
    module.__dict__.update(content)
    module.__path__ = []  # a package, whatever is below
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


def _alias(name: str, module: types.ModuleType) -> None:
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)


def in_thread(target: Callable[..., Any], args: Any = (), name: str = None, daemon: bool = True,
              silent: bool = False) -> threading.Thread:
    """A thread that runs."""
    del silent
    thread = threading.Thread(target=target, args=args, name=name, daemon=daemon)
    thread.start()
    return thread


def split_list(items: list, parts: int) -> list:
    """`parts` pieces, the first ones longer by one."""
    each, more = divmod(len(items), parts)
    return [items[i * each + min(i, more):(i + 1) * each + min(i + 1, more)] for i in range(parts)]


def stand_in() -> None:
    """From now on `import horovod.torch` means kolo.torch. A Horovod that is installed is not looked at."""
    _module("horovod", "kolo in the place of Horovod", __version__=VERSION)
    _alias("horovod.torch", kolo.torch)
    for name, module in (("compression", compression), ("elastic", elastic), ("functions", objects),
                         ("mpi_ops", mpi_ops), ("optimizer", optimizer), ("sync_batch_norm", sync_batch_norm)):
        _alias(f"horovod.torch.{name}", module)
    _module("horovod.torch.elastic.state", "", TorchState=elastic.TorchState)
    _module("horovod.torch.elastic.sampler", "", ElasticSampler=elastic.ElasticSampler)
    _module("horovod.common", "")
    _alias("horovod.common.exceptions", errors)
    _alias("horovod.common.process_sets", process_sets)
    _module("horovod.common.elastic", "", ObjectState=elastic.ObjectState, State=elastic.ObjectState,
            run_fn=elastic.run)
    _module("horovod.common.util", "", split_list=split_list, gpu_available=lambda *_, **__: False,
            mpi_built=lambda *_, **__: True, gloo_built=lambda *_, **__: False, nccl_built=lambda *_, **__: False,
            num_rank_is_power_2=lambda ranks: ranks > 0 and ranks & (ranks - 1) == 0)
    _module("horovod.runner", "")
    _module("horovod.runner.util", "")
    _module("horovod.runner.util.threads", "", in_thread=in_thread)
