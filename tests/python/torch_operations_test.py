"""horovod.torch's operations on tensors against closed forms, on every type, and their gradients."""
import pytest
import torch
from torch_device import here, on_device  # noqa: F401

import kolo.torch as hvd

FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
TYPES = FLOATING + INTEGERS


def full(shape, value, dtype=torch.float32):
    return torch.full(shape, float(value)).to(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_allreduce_averages_and_sums(dtype, rank, size):
    tensor = full((3, 2), 4 * rank + 1, dtype)
    average = sum(4 * r + 1 for r in range(size)) / size
    assert hvd.allreduce(tensor).dtype == dtype
    assert hvd.allreduce(tensor).tolist() == full((3, 2), average, dtype).tolist()
    assert hvd.allreduce(tensor, op=hvd.Sum).tolist() == full((3, 2), average * size, dtype).tolist()
    assert tensor.tolist() == full((3, 2), 4 * rank + 1, dtype).tolist(), "the input stays as it is"
    assert hvd.allreduce_(tensor, op=hvd.Max) is tensor and (tensor == 4 * size - 3).all()


# Which is all that a half can be: three times one is no half as a rule.
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_equal_halves_add_up_to_the_nearest_half(dtype, rank, size):
    generator = torch.Generator().manual_seed(1)
    tensor = here((torch.rand(4 * size, 50, generator=generator, device="cpu") * 200 - 100).to(dtype))
    nearest = (tensor.double() * size).to(dtype)
    assert hvd.allreduce(tensor, op=hvd.Sum).equal(nearest)
    assert hvd.reducescatter(tensor, op=hvd.Sum).equal(nearest[4 * rank:4 * rank + 4])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_scales_of_integers_round_towards_zero(dtype, size):
    tensor = torch.tensor([5, -5]).to(dtype)
    result = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5)
    half = torch.tensor([2, -2]) if dtype is torch.int64 else torch.tensor([2.5, -2.5])
    assert result.tolist() == (half * size).tolist()


def test_average_is_the_old_parameter(rank, size):
    with pytest.warns(DeprecationWarning, match="has been replaced with `op`"):
        assert hvd.allreduce(torch.ones(1), average=False).item() == size
    with pytest.raises(ValueError, match="supersedes average"):
        hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)


def test_groups_are_reduced_together(rank, size):
    tensors = [full((2,), rank), full((3, 1), 1, torch.float64)]
    mean, ones = hvd.grouped_allreduce(tensors)
    assert mean.tolist() == [(size - 1) / 2] * 2 and ones.tolist() == [[1.0]] * 3
    assert hvd.grouped_allreduce_(tensors, op=hvd.Sum)[1] is tensors[1]
    assert tensors[1].tolist() == [[float(size)]] * 3


@pytest.mark.parametrize("dtype", TYPES + [torch.int16, torch.bool])
def test_moves_bring_tensors_as_they_are(dtype, rank, size):
    def own(r, rows=2):
        return torch.full((rows, 2), r % 2 if dtype is torch.bool else r).to(dtype)

    gathered = hvd.allgather(own(rank, rank + 1))
    assert gathered.dtype == dtype and gathered.equal(torch.cat([own(r, r + 1) for r in range(size)]))
    assert hvd.grouped_allgather([own(rank)])[0].equal(torch.cat([own(r) for r in range(size)]))
    assert hvd.broadcast(own(rank), size - 1).equal(own(size - 1))
    rows, received = hvd.alltoall(own(rank, 2 * size), splits=[2] * size)
    assert rows.equal(torch.cat([own(r) for r in range(size)]))
    assert received.dtype == torch.int32 and received.tolist() == [2] * size
    assert hvd.alltoall(own(rank, size)).equal(torch.cat([own(r, 1) for r in range(size)]))


def test_reducescatter_gives_the_first_ranks_one_row_more(rank, size):
    rows = torch.arange(7.0)
    assert hvd.reducescatter(rows, op=hvd.Sum).equal(torch.tensor_split(rows * size, size)[rank])
    assert hvd.grouped_reducescatter([rows, rows])[1].equal(torch.tensor_split(rows, size)[rank])


def test_compression_sends_half_and_gives_whole_floats(size):
    assert hvd.allreduce(torch.tensor([1 + 2**-12]), compression=hvd.Compression.fp16).item() == 1.0
    assert hvd.allreduce(torch.tensor([3.0]), compression=hvd.Compression.bf16).dtype is torch.float32
    assert hvd.allreduce(torch.tensor([3]), compression=hvd.Compression.fp16, op=hvd.Sum).item() == 3 * size


def test_handles_are_polled_and_synchronized_once(rank):
    handles = [hvd.allreduce_async(torch.ones(100), name=f"h{i}") for i in range(10)]
    for handle in handles:
        assert hvd.synchronize(handle).sum() == 100
        assert hvd.poll(handle) and hvd.synchronize(handle) is None


def test_sparse_tensors_are_gathered(rank, size):
    tensor = torch.sparse_coo_tensor([[0, rank]], [1.0, 2.0], (size,))
    total = hvd.sparse_allreduce_async(tensor, "rows", hvd.Sum)().to_dense()
    assert total.tolist() == [float(size + 2)] + [2.0] * (size - 1)


def gradient_through(operation, tensor, weight):
    tensor.requires_grad_(True)
    (operation(tensor) * weight).sum().backward()
    return tensor.grad


def test_gradients_follow_horovods_rules(rank, size):
    one = torch.ones(size)
    assert gradient_through(lambda x: hvd.allreduce(x, op=hvd.Sum), torch.ones(size), one).tolist() == [size] * size
    assert gradient_through(hvd.allreduce, torch.ones(size), rank + one).tolist() == [(size + 1) / 2] * size
    assert gradient_through(hvd.allgather, torch.ones(1), one).tolist() == [1]
    root = gradient_through(lambda x: hvd.broadcast(x, 0), torch.ones(size), one)
    assert root.tolist() == [1.0 if rank == 0 else 0.0] * size
    assert gradient_through(hvd.alltoall, torch.ones(size), rank + one).tolist() == [r + 1.0 for r in range(size)]
    assert gradient_through(lambda x: hvd.reducescatter(x, op=hvd.Sum), torch.ones(size), 1).tolist() == [size] * size
    first, second = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    sum(t.sum() for t in hvd.grouped_allreduce([first, second])).backward()
    assert first.grad.tolist() == [1, 1] and second.grad.tolist() == [1, 1, 1]


def test_wrong_tensors_are_refused_in_horovods_words(rank, size):
    with pytest.raises(ValueError, match="Tensor is required to be contiguous"):
        hvd.allreduce(torch.ones(4, 4)[:, ::2])
    with pytest.raises(ValueError, match=r"Tensor type torch\.(cuda\.)?ComplexFloatTensor is not supported"):
        hvd.allreduce(torch.ones(2, dtype=torch.complex64))
    if size > 1:
        with pytest.raises(hvd.HorovodInternalError, match="Mismatched shapes for allreduce.x: rank 0 has"):
            hvd.allreduce(torch.ones(2 + min(rank, 1)), name="x")
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_process_sets_have_ranks_of_their_own(rank, size):
    if size == 1:
        with pytest.raises(ValueError, match="duplicate process set"):
            hvd.add_process_set([0])
        return
    last = hvd.add_process_set([size - 1])
    assert last.included() == (rank == size - 1) and last.size() == 1
    if last.included():
        assert last.rank() == 0 and hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=last).item() == 1
    assert hvd.remove_process_set(last) and last.process_set_id is None
    assert not hvd.remove_process_set(hvd.global_process_set)
    with pytest.raises(ValueError, match="is not registered"):
        hvd.allreduce(torch.ones(1), process_set=last)


def test_sync_batch_norm_is_batch_norm_over_all_samples(rank, size):
    torch.manual_seed(3)
    everything = torch.randn(size * 4, 3, 2, dtype=torch.float64)
    whole = torch.nn.BatchNorm1d(3).double()
    part = hvd.SyncBatchNorm(3).double()
    expected_input = everything.clone().requires_grad_(True)
    own = everything[4 * rank: 4 * rank + 4].clone().requires_grad_(True)
    expected, found = whole(expected_input), part(own)
    torch.testing.assert_close(found, expected[4 * rank: 4 * rank + 4])
    torch.testing.assert_close(part.running_var, whole.running_var)
    (expected ** 3).sum().backward()
    (found ** 3).sum().backward()
    torch.testing.assert_close(own.grad, expected_input.grad[4 * rank: 4 * rank + 4])
    torch.testing.assert_close(hvd.allreduce(part.weight.grad, op=hvd.Sum), whole.weight.grad)


@pytest.mark.parametrize("how", ["allreduce", "grouped_allreduce", "in place", "reducescatter"])
def test_the_average_of_bools_is_whether_all_are_true(how, rank, size):
    values = torch.tensor([True, rank == 0, False] * size)
    average = {
        "allreduce": lambda: hvd.allreduce(values), "grouped_allreduce": lambda: hvd.grouped_allreduce([values, values])[1],
        "in place": lambda: hvd.allreduce_(values.clone()), "reducescatter": lambda: hvd.reducescatter(values),
    }[how]()
    assert average.dtype is torch.bool
    assert average.tolist() == [True, size == 1, False] * (1 if how == "reducescatter" else size)


def test_a_group_of_floats_and_integers_rounds_the_integers_alone(rank, size):
    floats, integers = hvd.grouped_allreduce([torch.tensor([rank + 0.5]), torch.tensor([2 * rank + 1])])
    assert floats.item() == (size - 1) / 2 + 0.5 and integers.item() == size
    with pytest.raises(ValueError, match="a group of bool and other types has no average"):
        hvd.grouped_allreduce([torch.tensor([1.5]), torch.tensor([True])])
