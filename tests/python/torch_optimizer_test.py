"""DistributedOptimizer against one process that sees the samples of all ranks."""
import copy

import pytest
import torch
from torch_device import on_device  # noqa: F401

import kolo.torch as hvd
from torch_training import batches, expect_equal, loss_of, net, own, sgd, train

@pytest.mark.parametrize("options", [
    {}, {"gradient_predivide_factor": 2.0}, {"groups": 2}, {"op": hvd.Sum}, {"compression": hvd.Compression.none},
], ids=str)
def test_ranks_train_as_one_with_all_samples(net, options, rank, size):
    reference = copy.deepcopy(net)
    factor = size if options.get("op") == hvd.Sum else 1
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), **options)
    plain = sgd(reference)
    assert isinstance(optimizer, torch.optim.SGD)
    for x in batches(size, 6):
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, factor * loss_of(reference, x))
    expect_equal(net, reference)


def test_gradients_that_are_set_to_none_find_back_into_their_buckets(net, rank, size):
    reference = copy.deepcopy(net)
    optimizer, plain = hvd.DistributedOptimizer(sgd(net), net.named_parameters()), sgd(reference)
    for x in batches(size, 5):
        for parameter in net.parameters():
            parameter.grad = None
        loss_of(net, own(x, rank)).backward()
        optimizer.step()
        train(reference, plain, loss_of(reference, x))
    expect_equal(net, reference)


def test_gradients_are_added_up_over_passes(net, rank, size):
    reference = copy.deepcopy(net)
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), backward_passes_per_step=2)
    plain = sgd(reference)
    for x, y in zip(batches(size, 4), batches(size, 8)[4:]):
        optimizer.zero_grad()
        plain.zero_grad()
        for part in (x, y):
            loss_of(net, own(part, rank)).backward()
            loss_of(reference, part).backward()
        optimizer.step()
        plain.step()
    expect_equal(net, reference)
    if size == 1:
        return  # which sends nothing, and counts nothing
    loss_of(net, own(x, rank)).backward()
    loss_of(net, own(x, rank)).backward()
    with pytest.raises(AssertionError, match="more than backward_passes_per_step"):
        loss_of(net, own(x, rank)).backward()
    optimizer.synchronize()


def test_parameters_that_some_ranks_do_not_use_get_the_others_gradients(net, rank, size):
    reference = copy.deepcopy(net)
    optimizer, plain = hvd.DistributedOptimizer(sgd(net), net.named_parameters()), sgd(reference)
    for step, x in enumerate(batches(size, 8)):
        train(net, optimizer, loss_of(net, own(x, rank), wide=(step + rank) % 2 == 0))
        losses = [loss_of(reference, own(x, r), wide=(step + r) % 2 == 0) for r in range(size)]
        train(reference, plain, sum(losses) / size)
    expect_equal(net, reference)


def test_ranks_without_data_join_and_come_back(net, rank, size):
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters())
    for epoch in range(2):
        for step in range(4 + rank):
            optimizer.zero_grad()
            (net.last.bias * torch.arange(3.0)).sum().backward()
            before = net.last.bias.detach().clone()
            optimizer.step()
            # An average over all ranks, to which those that have joined add zeros.
            still_there = sum(step < 4 + r for r in range(size)) / size
            torch.testing.assert_close(before - net.last.bias.detach(), 0.1 * still_there * torch.arange(3.0).double())
        assert 0 <= hvd.join() < size
        hvd.broadcast_parameters(net.state_dict(), 0)


def weight_with_optimizer(name):
    weight = torch.nn.Parameter(torch.zeros(3))
    return weight, hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [(name, weight)])


# Steps of the two optimizers while all ranks have data, then of those that go on without rank 0.
@pytest.mark.parametrize("together, alone", [
    ("ab" * 3, "ab"), ("ab" * 3, "ba"), ("ab" * 3, "b"), ("ab" * 3, "aaa"), ("ab" * 3, "a" * 40),
    ("ababbbb" + "a" * 7, "b"), ("abab" + "a" * 40, "b"), ("abab" + "a" * 40, "bab"), ("abab" + "a" * 40, "ab" * 9),
    ("a", "a"), ("ab", "b"), ("", "ab"), ("aaaa", "bb"),
])
def test_ranks_join_whatever_the_order_of_two_optimizers_steps(together, alone, rank, size):
    weights = {name: weight_with_optimizer(f"{name} of {together}, {alone}") for name in "ab"}
    for _ in range(2):  # and find into buckets again
        start = {name: weight.detach().clone() for name, (weight, _) in weights.items()}
        for name in together + (alone if rank else ""):
            weight, optimizer = weights[name]
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
        hvd.join()
        for name, (weight, _) in weights.items():
            moved = together.count(name) + (alone.count(name) * (size - 1) / size if rank else 0)
            torch.testing.assert_close(start[name] - weight.detach(), torch.full((3,), float(moved)))
            hvd.broadcast_(weight.data, 0)


def test_sparse_gradients_add_the_rows_of_all_ranks(rank, size):
    for as_dense in (False, True):
        torch.manual_seed(1)
        table = torch.nn.Embedding(5, 2, sparse=True)
        start = table.weight.detach().clone()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), table.named_parameters(),
                                             sparse_as_dense=as_dense)
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([0, rank])).sum().backward()
            optimizer.step()
        expected = start.clone()
        for r in range(size):
            expected[0] -= 3 / size
            expected[r] -= 3 / size
        torch.testing.assert_close(table.weight.detach(), expected)


def test_clipping_between_synchronize_and_step_sees_the_average(net, rank, size):
    reference = copy.deepcopy(net)
    optimizer, plain = hvd.DistributedOptimizer(sgd(net), net.named_parameters()), sgd(reference)
    for x in batches(size, 3):
        optimizer.zero_grad()
        loss_of(net, own(x, rank)).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        with optimizer.skip_synchronize():
            optimizer.step()
        plain.zero_grad()
        loss_of(reference, x).backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
        plain.step()
    expect_equal(net, reference)
    loss_of(net, own(x, rank)).backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match="without optimizer.skip_synchronize"):
        optimizer.step()


def test_compression_trains_with_rounded_gradients(net, rank, size):
    reference = copy.deepcopy(net)
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), compression=hvd.Compression.fp16)
    plain = sgd(reference)
    for x in batches(size, 4):
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
    for found, expected in zip(net.parameters(), reference.parameters()):
        torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)


def test_adasum_of_equal_gradients_is_one_of_them(rank, size):
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.5), op=hvd.Adasum)
    for _ in range(2):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.zeros(3))


def test_wrong_options_are_refused(net, size):
    with pytest.raises(ValueError, match="must be unique. Found duplicates: a"):
        hvd.DistributedOptimizer(sgd(net), [("a", parameter) for parameter in net.parameters()])
    with pytest.raises(ValueError, match="were not named"):
        hvd.DistributedOptimizer(sgd(net), list(net.named_parameters())[1:])
    with pytest.raises(ValueError, match="should be a sequence of tuples"):
        hvd.DistributedOptimizer(sgd(net), net.parameters())
    with pytest.raises(ValueError, match="gradient_predivide_factor not supported with op != Average"):
        hvd.DistributedOptimizer(sgd(net), op=hvd.Sum, gradient_predivide_factor=2.0)
    with pytest.raises(ValueError, match="backward_passes_per_step must be > 0"):
        hvd.DistributedOptimizer(sgd(net), backward_passes_per_step=0)


def test_gradients_are_not_zeroed_before_they_are_applied(net, rank, size):
    if size == 1:
        pytest.skip("one rank sends nothing")
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    loss_of(net, own(batches(size, 1)[0], rank)).backward()
    with pytest.raises(AssertionError, match="after loss.backward"):
        optimizer.zero_grad()
    optimizer.step()


def test_state_and_options_of_the_root_reach_all_ranks(net, rank, size):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1 * (rank + 1), weight_decay=0.01)
    if rank == 0:
        train(net, optimizer, loss_of(net, batches(1, 1)[0]))
    optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters())
    hvd.broadcast_parameters(net.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert optimizer.param_groups[0]["lr"] == 0.1
    for values in hvd.allgather_object([state["exp_avg"].sum().item() for state in optimizer.state.values()]):
        assert values == [state["exp_avg"].sum().item() for state in optimizer.state.values()] and any(values)
    for x in batches(size, 3):
        train(net, optimizer, loss_of(net, own(x, rank)))
    sums = hvd.allgather_object([parameter.sum().item() for parameter in net.parameters()])
    assert sums == [sums[0]] * size
