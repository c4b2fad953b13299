"""kolo for PyTorch, with the API of horovod.torch 0.28: `import kolo.torch as hvd`.

docs/python.md says what is the same, what is better and what is missing.
"""

from kolo.torch import elastic
from kolo.torch.checkpoints import load_checkpoint, save_checkpoint
from kolo.torch.compression import Compression
from kolo.torch.differentiable import (allgather, allreduce, alltoall, broadcast, grouped_allgather, grouped_allreduce,
                                       grouped_reducescatter, reducescatter)
from kolo.torch.errors import HorovodInternalError, HostsUpdatedInterrupt
from kolo.torch.gradient_buckets import join
from kolo.torch.handles import barrier, poll, synchronize
from kolo.torch.job import *  # noqa: F403
from kolo.torch.moves import (allgather_async, alltoall_async, broadcast_, broadcast_async, broadcast_async_,
                              grouped_allgather_async)
from kolo.torch.objects import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from kolo.torch.optimizer import DistributedOptimizer
from kolo.torch.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from kolo.torch.reductions import (Adasum, Average, Max, Min, Product, Sum, allreduce_, allreduce_async,
                                   allreduce_async_, grouped_allreduce_, grouped_allreduce_async,
                                   grouped_allreduce_async_, grouped_reducescatter_async, reducescatter_async,
                                   sparse_allreduce_async)
from kolo.torch.sync_batch_norm import SyncBatchNorm
