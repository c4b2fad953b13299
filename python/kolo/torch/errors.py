"""Horovod's exceptions."""


class HorovodInternalError(RuntimeError):
    """A collective failed. Its cause (`__cause__`) is the error of kolo, whose text it has."""


class HostsUpdatedInterrupt(RuntimeError):
    """Horovod's way to say that hosts have come or gone. kolo does not raise it: see kolo.torch.elastic."""

    def __init__(self, skip_sync: bool = False):
        super().__init__("the hosts of the job have changed")
        self.skip_sync = skip_sync
