"""Programs that were written for horovod.torch, unchanged, on kolo: `python3 -m kolo.horovod train.py …`.

stand_in() makes `import horovod.torch` mean kolo.torch, and the modules of horovod that such programs import beside it
what kolo has for them. Nothing of Horovod needs to be installed.
"""

from kolo.horovod.environment import take_over
from kolo.horovod.modules import stand_in

__all__ = ["stand_in", "take_over"]
