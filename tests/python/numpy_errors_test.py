"""What goes wrong is an exception that says so, and the engine goes on."""
import numpy as np
import pytest

import kolo


def goes_on(size):
    return kolo.allreduce(np.array([1.0]), "sum", name="after").tolist() == [size]


def test_shapes_that_differ_are_named_with_their_ranks(rank, size):
    if size == 1:
        pytest.skip("one rank agrees with itself")
    with pytest.raises(kolo.errors.InvalidArgumentError, match=r"Mismatched shapes for x: rank 0 has \[3\], rank 1 has \[4\]"):
        kolo.allreduce(np.zeros(3 + min(rank, 1)), "sum", name="x")
    assert goes_on(size)


def test_types_that_differ_are_named(rank, size):
    if size == 1:
        pytest.skip("one rank agrees with itself")
    with pytest.raises(kolo.Error, match="Mismatched data types for x: rank 0 has float32, rank 1 has float64"):
        kolo.allreduce(np.zeros(3, np.float64 if rank else np.float32), "sum", name="x")
    assert goes_on(size)


def test_a_name_that_is_pending_is_refused(rank, size):
    if size == 1:
        pytest.skip("one rank does not wait")
    if rank == 0:
        first = kolo.allreduce_async(np.zeros(3), "sum", name="twice")
        with pytest.raises(ValueError, match="allreduce twice is already pending on rank 0"):
            kolo.allreduce_async(np.zeros(3), "sum", name="twice")
    kolo.barrier(name="refused")
    if rank > 0:
        first = kolo.allreduce_async(np.zeros(3), "sum", name="twice")
    first.wait()


def test_averages_of_integers_are_refused_at_the_call(size):
    with pytest.raises(ValueError, match="average is not defined for int32"):
        kolo.allreduce(np.zeros(3, np.int32))
    assert goes_on(size)


def test_types_without_reductions_are_refused(size):
    with pytest.raises(TypeError, match="complex64 has no reductions"):
        kolo.allreduce(np.zeros(3, np.complex64), "sum")
    with pytest.raises(TypeError, match="a NumPy array is asked for, this is a list"):
        kolo.allreduce_async([1, 2], "sum", in_place=True)
    assert goes_on(size)


def test_arrays_with_gaps_are_refused_in_place(size):
    with pytest.raises(ValueError, match="is not contiguous"):
        kolo.allreduce(np.zeros((4, 4))[:, ::2], "sum", in_place=True)
    assert kolo.allreduce(np.ones((4, 4))[:, ::2], "sum").tolist() == [[size, size]] * 4


def read_only(kind, values, path):
    if kind == "a map":
        np.save(path / "map.npy", values)
        return np.load(path / "map.npy", mmap_mode="r")
    array = np.frombuffer(values.tobytes(), values.dtype) if kind == "bytes" else values.copy()
    array.flags.writeable = False
    return array


# Of all operations that write into what they are given; only the last rank gives what cannot be written.
@pytest.mark.parametrize("kind", ["a flag", "a map", "bytes"])
@pytest.mark.parametrize("name", ["g", None])
@pytest.mark.parametrize("call", [
    lambda array, name: kolo.allreduce(array, "sum", name=name, in_place=True),
    lambda array, name: kolo.grouped_allreduce([np.ones(2), array], "sum", name=name, in_place=True),
    lambda array, name: kolo.broadcast(array, 0, name=name, in_place=True),
    lambda array, name: kolo.grouped_broadcast([np.ones(2), array], 0, name=name, in_place=True),
], ids=["allreduce", "grouped_allreduce", "broadcast", "grouped_broadcast"])
def test_what_cannot_be_written_is_refused_and_the_others_learn_it(call, name, kind, rank, size, tmp_path, request):
    if size == 1 and "broadcast" in request.node.name:
        pytest.skip("the root is only read")
    values = np.arange(4.0)
    if rank == size - 1:
        array = read_only(kind, values, tmp_path)
        with pytest.raises(ValueError, match=f"{name or ''}.*: the array is read-only"):
            call(array, name)
        assert np.array_equal(array, values)
    else:
        with pytest.raises(kolo.errors.FailedPreconditionError,
                           match=f"rank {size - 1} refused .*{name or 'noname'}.*: the array is read-only"):
            call(values, name)
    assert goes_on(size)


def test_the_root_of_a_broadcast_in_place_is_only_read(rank, size, tmp_path):
    values = np.arange(4.0)
    array = read_only("a map", values, tmp_path) if rank == 0 else np.zeros(4)
    assert np.array_equal(kolo.broadcast(array, 0, name="weights", in_place=True), values)


def test_whatever_python_refuses_on_one_rank_is_told_to_the_others(rank, size):
    if size == 1:
        pytest.skip("nobody waits")
    if rank == 1:
        with pytest.raises(TypeError, match="x: complex64 has no reductions"):
            kolo.allreduce(np.zeros(3, np.complex64), "sum", name="x")
        with pytest.raises(Exception, match="pickle"):
            kolo.allgather_object(lambda: 0, name="y")
    else:
        with pytest.raises(kolo.errors.FailedPreconditionError, match="rank 1 refused x: complex64 has no"):
            kolo.allreduce(np.zeros(3), "sum", name="x")
        with pytest.raises(kolo.errors.FailedPreconditionError, match="rank 1 refused y: .*pickle"):
            kolo.allgather_object(0, name="y")
    assert goes_on(size)


def test_a_root_outside_the_set_is_refused(size):
    with pytest.raises(ValueError, match=f"root rank {size} is outside the process set of {size} ranks"):
        kolo.broadcast(np.zeros(3), size)
    assert goes_on(size)


def test_splits_must_add_up(size):
    with pytest.raises(ValueError, match=f"splits must have {size} non-negative entries that sum to 3"):
        kolo.alltoall(np.zeros(3), [7] * size)
    assert goes_on(size)


def test_unknown_reductions_are_named(size):
    with pytest.raises(ValueError, match="median"):
        kolo.allreduce(np.zeros(3), "median")
    assert goes_on(size)


def test_results_are_taken_once(size):
    handle = kolo.allgather_async(np.zeros(1), name="once")
    handle.wait()
    with pytest.raises(kolo.errors.FailedPreconditionError, match="the result of once was taken already"):
        handle.wait()
    assert goes_on(size)
