"""What kolo raises: one class for each code of core/base/error.h, named as there."""


class Error(RuntimeError):
    """An error of kolo: one sentence that says what was asked, what was found, where, what would be right."""


class CancelledError(Error):
    pass


class UnknownError(Error):
    pass


class InvalidArgumentError(Error, ValueError):
    """Also what the ranks disagree on: `Mismatched shapes for x: rank 0 has [17], rank 1 has [18]`."""


class DeadlineExceededError(Error):
    """Some rank did not come in time."""


class NotFoundError(Error):
    pass


class AlreadyExistsError(Error):
    pass


class ResourceExhaustedError(Error):
    pass


class FailedPreconditionError(Error):
    """Not now: before init(), after another rank refused the call, while a rank has joined."""


class AbortedError(Error):
    """Another rank failed, or this one called shutdown()."""


class OutOfRangeError(Error):
    """The data of a rank has ended."""


class UnimplementedError(Error):
    pass


class InternalError(Error):
    pass


class UnavailableError(Error):
    """A rank is gone."""


class DataLossError(Error):
    """A file is damaged or cut."""
