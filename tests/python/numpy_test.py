"""Collectives on NumPy arrays against closed forms, on every type."""
import itertools
import threading

import numpy as np
import pytest

import kolo

FLOATING = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.uint8, np.int32, np.int64]
MOVED_ONLY = [np.int16, np.uint32, np.complex64, np.dtype("datetime64[s]")]


@pytest.mark.parametrize("dtype", FLOATING + INTEGERS)
def test_sum_adds_what_all_ranks_give(dtype, rank, size):
    array = np.full((2, 3), rank + 1, dtype)
    total = kolo.allreduce(array, "sum")
    assert total.dtype == dtype
    np.testing.assert_array_equal(total, np.full((2, 3), size * (size + 1) // 2))
    np.testing.assert_array_equal(array, np.full((2, 3), rank + 1))


@pytest.mark.parametrize("op, of_ranks", [("min", min), ("max", max), ("product", np.prod), ("average", np.mean)])
@pytest.mark.parametrize("dtype", FLOATING)
def test_other_reductions(dtype, op, of_ranks, rank, size):
    result = kolo.allreduce(np.array([rank + 1, 2], dtype), op)
    np.testing.assert_allclose(result, np.array([of_ranks(range(1, size + 1)), of_ranks([2] * size)], dtype), rtol=1e-3)


def test_booleans_are_combined_by_or(rank):
    assert kolo.allreduce(np.array([rank == 0, False]), "sum").tolist() == [True, False]


def test_in_place_writes_into_the_array_itself(rank, size):
    array = np.full(1000, float(rank))
    assert kolo.allreduce(array, "sum", in_place=True) is array
    assert (array == size * (size - 1) / 2).all()
    assert kolo.broadcast(array, 0, in_place=True) is array


def test_scales_apply_before_and_after(size):
    assert kolo.allreduce(np.array([8.0]), "sum", prescale=0.5, postscale=0.25).tolist() == [size]


def test_groups_are_reduced_together(rank, size):
    group = [np.full(3, rank, np.float32), np.full((2, 2), 1, np.float64)]
    results = kolo.grouped_allreduce(group, "sum", name="pair")
    assert (results[0] == size * (size - 1) / 2).all() and (results[1] == size).all()
    assert kolo.grouped_allreduce(group, "sum", in_place=True)[0] is group[0]
    assert (group[1] == size).all()


@pytest.mark.parametrize("dtype", FLOATING + INTEGERS + MOVED_ONLY)
def test_allgather_brings_the_rows_of_all(dtype, rank, size):
    rows = kolo.allgather(np.full((rank + 1, 2), rank, dtype))
    expected = np.concatenate([np.full((r + 1, 2), r, dtype) for r in range(size)])
    assert rows.dtype == dtype
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("dtype", FLOATING + INTEGERS + MOVED_ONLY)
def test_broadcast_brings_the_roots_array(dtype, rank, size):
    root = size - 1
    assert kolo.broadcast(np.array(rank, dtype), root) == np.array(root, dtype)
    first, second = kolo.grouped_broadcast([np.full(2, rank, dtype), np.full((1, 3), rank + 1, dtype)], root)
    np.testing.assert_array_equal(first, np.full(2, root, dtype))
    np.testing.assert_array_equal(second, np.full((1, 3), root + 1, dtype))


@pytest.mark.parametrize("dtype", FLOATING + INTEGERS + MOVED_ONLY)
def test_alltoall_sends_each_rank_its_rows(dtype, rank, size):
    splits = list(range(1, size + 1))  # rank j gets j + 1 rows
    rows, counts = kolo.alltoall(np.full(sum(splits), rank, dtype), splits)
    np.testing.assert_array_equal(rows, np.repeat(np.arange(size), rank + 1).astype(dtype))
    assert counts == [rank + 1] * size


def test_reduce_scatter_gives_the_first_ranks_one_row_more(rank, size):
    rows = np.arange(7.0)[:, None] * np.ones(2)
    own = kolo.reduce_scatter(rows, "sum")
    np.testing.assert_array_equal(own, np.array_split(rows * size, size)[rank])
    grouped = kolo.grouped_reduce_scatter([rows, rows[:2]], "average")
    np.testing.assert_array_equal(grouped[0], np.array_split(rows, size)[rank])
    np.testing.assert_array_equal(grouped[1], np.array_split(rows[:2], size)[rank])


def test_gather_and_scatter_go_to_and_from_the_root(rank, size):
    rows = kolo.gather(np.full((1, 2), rank), 0)
    assert rows.shape == ((size, 2) if rank == 0 else (0, 2))
    share = kolo.scatter(np.arange(2 * size), 0)
    assert share.tolist() == [2 * rank, 2 * rank + 1]


def test_empty_arrays_take_part(size):
    assert kolo.allreduce(np.zeros((0, 3)), "sum").shape == (0, 3)
    assert kolo.allgather(np.zeros((0, 3))).shape == (0, 3)


def test_objects_travel(rank, size):
    assert kolo.broadcast_object({"rank": rank}, size - 1) == {"rank": size - 1}
    assert kolo.allgather_object("x" * rank) == ["x" * r for r in range(size)]


def test_handles_tell_when_they_are_over(rank):
    handles = [kolo.allreduce_async(np.full(10, float(rank)), "max", name=f"h{i}") for i in range(20)]
    assert all(handle.wait_for(60) and handle.poll() for handle in handles)
    assert handles[3].name == "h3"
    assert all((handle.wait() == kolo.size() - 1).all() for handle in handles)


def test_a_dropped_handle_leaves_the_memory_alive(size):
    for i in range(50):
        kolo.allreduce_async(np.ones(10_000), "sum", name=f"dropped {i}")
    kolo.barrier()


def test_several_threads_use_names_in_any_order(rank, size):
    results = {}

    def work(thread):
        order = [(i * (7 if rank % 2 else 11)) % 30 for i in range(30)]
        handles = {k: kolo.allreduce_async(np.array([float(k)]), "sum", name=f"t{thread}/{k}") for k in order}
        for k, handle in handles.items():
            results[thread, k] = handle.wait()[0]

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {(t, k): size * k for t, k in itertools.product(range(2), range(30))}


def test_process_sets_work_by_themselves(rank, size):
    evens = kolo.process_set(range(0, size, 2))
    assert evens.ranks == list(range(0, size, 2)) and evens.size == (size + 1) // 2
    if rank % 2 == 0:
        assert kolo.allreduce(np.array([1.0]), "sum", process_set=evens).tolist() == [evens.size]
        assert evens.rank == rank // 2
    else:
        with pytest.raises(kolo.errors.InvalidArgumentError, match=f"rank {rank} is not in process set"):
            kolo.allreduce(np.array([1.0]), "sum", process_set=evens)
    kolo.barrier()
    if size > 1:  # else it is the set of all ranks
        evens.remove()
    same = kolo.split(color=rank % 2)
    assert same.ranks == list(range(rank % 2, size, 2))


def test_join_lets_the_others_go_on(rank, size):
    for _ in range(rank):
        kolo.allreduce(np.array([1.0]), "sum", name="uneven")
    assert kolo.join() in range(size)
