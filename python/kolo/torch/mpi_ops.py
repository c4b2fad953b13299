"""The names of horovod.torch.mpi_ops, for programs that import them from there."""

from kolo.torch.differentiable import *  # noqa: F403
from kolo.torch.errors import HorovodInternalError
from kolo.torch.gradient_buckets import join
from kolo.torch.handles import barrier, poll, synchronize
from kolo.torch.job import *  # noqa: F403
from kolo.torch.moves import *  # noqa: F403
from kolo.torch.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from kolo.torch.reductions import *  # noqa: F403
