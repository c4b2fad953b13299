"""kolo's collectives for Python: synchronous data-parallel training over MPI.

    import kolo, numpy as np
    kolo.init()
    total = kolo.allreduce(np.ones(3, np.float32), "sum")

kolo.torch is for PyTorch, with the API of horovod.torch; `python3 -m kolo.horovod train.py` runs programs that were
written for Horovod as they are. docs/python.md is the manual.
"""

from kolo import _kolo, errors
from kolo.checkpoints import load_checkpoint, save_checkpoint
from kolo.collectives import *  # noqa: F403
from kolo.errors import Error
from kolo.handles import Handle
from kolo.job import *  # noqa: F403
from kolo.predictor import Predictor, load_predictor
from kolo.process_sets import ALL, ProcessSet, process_set, split

__version__: str = _kolo.__version__
