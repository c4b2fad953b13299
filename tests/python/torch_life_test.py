"""An optimizer's whole life, beside one process that sees the samples of all ranks: schedules, closures, what begins to
train or is frozen, saving and copying."""
import copy
import io
import pickle

import pytest
import torch
from torch_device import on_device  # noqa: F401

import kolo
import kolo.torch as hvd
from torch_training import batches, expect_equal, loss_of, net, own, sgd, train

# How gradients travel: in buckets, by name, in groups.
WAYS = [{}, {"gradient_predivide_factor": 2.0}, {"groups": 2}, {"compression": hvd.Compression.none, "groups": 1}]


def expect_equal_ranks(net):
    for values in hvd.allgather_object([parameter.detach().clone() for parameter in net.parameters()]):
        for found, expected in zip(net.parameters(), values):
            assert torch.equal(found, expected)


def pair(net, options={}, make=sgd):
    """The distributed optimizer of `net`, and a copy of `net` with a plain one."""
    reference = copy.deepcopy(net)
    return hvd.DistributedOptimizer(make(net), net.named_parameters(), **options), reference, make(reference)


# ---- Schedules.

@pytest.mark.parametrize("broadcasts", [True, False])
@pytest.mark.parametrize("is_made_before", [True, False])
@pytest.mark.parametrize("kind", [
    lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5),
    lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20),
    lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
], ids=["StepLR", "OneCycleLR", "LambdaLR"])
@pytest.mark.filterwarnings("error:Detected call of")
def test_schedules_made_before_and_after_set_the_rates(net, kind, is_made_before, broadcasts, rank, size):
    reference = copy.deepcopy(net)
    inner, plain = sgd(net), sgd(reference)
    schedule = kind(inner) if is_made_before else None
    optimizer = hvd.DistributedOptimizer(inner, net.named_parameters())
    schedule = schedule or kind(optimizer)
    expected = kind(plain)
    if broadcasts:
        hvd.broadcast_optimizer_state(optimizer, 0)
    for x in batches(size, 5):
        assert optimizer.param_groups[0]["lr"] == plain.param_groups[0]["lr"]
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
        schedule.step()
        expected.step()
    expect_equal(net, reference)


@pytest.mark.parametrize("loads_into", ["the wrapper", "the wrapped"])
def test_a_schedule_made_before_goes_on_after_load_state_dict(net, loads_into, rank, size):
    reference = copy.deepcopy(net)
    inner, plain = sgd(net), sgd(reference)
    schedule, expected = [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5) for optimizer in (inner, plain)]
    optimizer = hvd.DistributedOptimizer(inner, net.named_parameters())
    for step, x in enumerate(batches(size, 6)):
        if step == 2:
            saved = copy.deepcopy(optimizer.state_dict())
            (optimizer if loads_into == "the wrapper" else inner).load_state_dict(saved)
            assert inner.param_groups is optimizer.param_groups and inner.state is optimizer.state
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
        schedule.step()
        expected.step()
    assert optimizer.param_groups[0]["lr"] == plain.param_groups[0]["lr"] == 0.1 / 2 ** 6
    expect_equal(net, reference)


def test_broadcast_state_writes_into_what_exists_and_takes_no_step(net, rank, size):
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(net.parameters(), lr=0.1 * (rank + 1)), net.named_parameters())
    for x in batches(size, 2):
        train(net, optimizer, loss_of(net, own(x, rank)))
    group = optimizer.param_groups[0]
    moments = [optimizer.state[parameter]["exp_avg"] for parameter in net.parameters()]
    for moment in moments:
        moment += rank
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert optimizer.param_groups[0] is group and group["lr"] == 0.1
    for parameter, moment in zip(net.parameters(), moments):
        assert optimizer.state[parameter]["exp_avg"] is moment
    for values in hvd.allgather_object(moments):
        assert all(torch.equal(one, other) for one, other in zip(values, moments))
    assert int(optimizer.state[net.last.bias]["step"]) == 2


def test_adam_whose_state_was_broadcast_before_the_first_step_is_one_process_adam(net, rank, size):
    optimizer, reference, plain = pair(net, make=lambda net: torch.optim.Adam(net.parameters(), lr=0.01))
    hvd.broadcast_parameters(net.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    for x in batches(size, 4):
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
    expect_equal(net, reference)


def test_what_no_rank_uses_rests_though_the_broadcast_gives_it_a_gradient(net, rank, size):
    def make(net):
        return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)

    optimizer, reference, plain = pair(net, make=make)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert (net.extra.weight.grad is None) == (size == 1)
    for x in batches(size, 4):
        train(net, optimizer, loss_of(net, own(x, rank), wide=False))
        train(reference, plain, loss_of(reference, x, wide=False))
    expect_equal(net, reference)


def test_state_that_the_root_alone_has_reaches_the_others(net, rank, size):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    if rank == 0:
        train(net, optimizer, loss_of(net, batches(1, 1)[0]))
    optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters())
    hvd.broadcast_optimizer_state(optimizer, 0)
    sums = hvd.allgather_object([state["momentum_buffer"].sum().item() for state in optimizer.state.values()])
    assert len(sums[0]) == 6 and sums == [sums[0]] * size


def test_groups_of_other_shapes_are_refused_on_all_ranks(rank, size):
    if size == 1:
        pytest.skip("one rank agrees with itself")
    weight = torch.nn.Parameter(torch.zeros(3 + (rank == 1)))
    with pytest.raises(ValueError, match=r"of shapes \[\[\(3,\)\]\] on rank 0, \[\[\(4,\)\]\] on rank 1"):
        hvd.broadcast_optimizer_state(torch.optim.SGD([weight], lr=1.0), 0)


# ---- Closures.

@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("make", [
    sgd, lambda net: torch.optim.Adam(net.parameters(), lr=0.01),
    lambda net: torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4),
    lambda net: torch.optim.LBFGS(net.parameters(), max_iter=6, line_search_fn="strong_wolfe"),
], ids=["SGD", "Adam", "LBFGS", "LBFGS with a line search"])
def test_closures_see_the_gradients_of_all_ranks(net, make, options, rank, size):
    optimizer, reference, plain = pair(net, options, make)

    def closure_of(net, optimizer, x):
        def closure():
            optimizer.zero_grad()
            loss = loss_of(net, x)
            loss.backward()
            return loss

        return closure

    for x in batches(size, 4):
        loss = optimizer.step(closure_of(net, optimizer, own(x, rank)))
        expected = plain.step(closure_of(reference, plain, x))
        if isinstance(optimizer, torch.optim.LBFGS):
            torch.testing.assert_close(loss, expected)
    expect_equal(net, reference)
    expect_equal_ranks(net)


def test_a_closure_may_clip_what_it_has_synchronized(net, rank, size):
    optimizer, reference, plain = pair(net)
    for x in batches(size, 3):
        def closure():
            optimizer.zero_grad()
            loss_of(net, own(x, rank)).backward()
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.01)

        def expected():
            plain.zero_grad()
            loss_of(reference, x).backward()
            torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)

        optimizer.step(closure)
        plain.step(expected)
    expect_equal(net, reference)


def test_the_loss_of_the_closure_comes_back(net, rank, size):
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())

    def closure():
        optimizer.zero_grad()
        loss_of(net, torch.ones(1, 4).double()).backward()
        return 3.0 + rank

    assert optimizer.step(closure) == 3.0 + rank


def test_a_closure_in_skip_synchronize_is_refused(net):
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    with pytest.raises(ValueError, match="inside skip_synchronize.*the closure"), optimizer.skip_synchronize():
        optimizer.step(lambda: 0.0)


# ---- What begins to train, and what rests.

@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_layer_that_is_unfrozen_trains_from_then_on(net, options, rank, size):
    net.first.requires_grad_(False)
    optimizer, reference, plain = pair(net, options)
    for step, x in enumerate(batches(size, 8)):
        if step == 3:
            net.first.requires_grad_(True)
            reference.first.requires_grad_(True)
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
    expect_equal(net, reference)
    expect_equal_ranks(net)


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_group_that_is_added_trains_from_then_on(net, options, rank, size):
    def make(net):
        return torch.optim.SGD(net.last.parameters(), lr=0.1, momentum=0.9)

    optimizer, reference, plain = pair(net, options, make)
    for step, x in enumerate(batches(size, 8)):
        if step == 3:
            optimizer.add_param_group({"params": list(net.first.parameters()), "lr": 0.05})
            plain.add_param_group({"params": list(reference.first.parameters()), "lr": 0.05})
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
    expect_equal(net, reference)
    expect_equal_ranks(net)


def test_a_group_that_comes_between_backward_and_step_is_combined_in_that_step(rank, size):
    a, b = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([a], lr=1.0), [("a", a), ("b", b)])
    ((a + b) * (rank + 1)).sum().backward()
    optimizer.add_param_group({"params": [b]})
    optimizer.step()
    torch.testing.assert_close(b.detach(), a.detach())
    torch.testing.assert_close(b.detach(), torch.full((2,), -(size + 1) / 2))


def test_what_trains_on_some_ranks_alone_is_named_on_all(net, rank, size):
    if size == 1:
        pytest.skip("one rank agrees with itself")
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    extra = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    if rank == 1:
        optimizer.add_param_group({"params": [extra]})
    with pytest.raises(ValueError, match=r'"allreduce.noname.1.0" trains since this step, and rank 0 has none, rank 1 has \[2\]'):
        train(net, optimizer, loss_of(net, own(batches(size, 1)[0], rank)))


def test_what_is_frozen_on_some_ranks_from_the_beginning_is_named_on_all(net, rank, size):
    if size == 1:
        pytest.skip("one rank agrees with itself")
    net.first.bias.requires_grad_(rank != 1)
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    others = [other for other in range(size) if other != 1]
    with pytest.raises(ValueError) as raised:
        train(net, optimizer, loss_of(net, own(batches(size, 1)[0], rank)))
    assert f'"first.bias" trains on ranks {others}, and not on ranks [1]' in str(raised.value)


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("step_of_freezing", [1, 3])  # by name still, and in buckets
def test_a_layer_that_is_frozen_rests_though_momentum_and_decay_go_on(net, options, step_of_freezing, rank, size):
    def make(net):
        return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)

    optimizer, reference, plain = pair(net, options, make)
    for step, x in enumerate(batches(size, 8)):
        for each in (net, reference):
            each.first.requires_grad_(not step_of_freezing <= step < 6)
        optimizer.zero_grad(set_to_none=True)
        loss_of(net, own(x, rank)).backward()
        optimizer.step()
        plain.zero_grad(set_to_none=True)
        loss_of(reference, x).backward()
        plain.step()
        assert (net.first.weight.grad is None) == (step_of_freezing <= step < 6) or size == 1
    expect_equal(net, reference)
    expect_equal_ranks(net)


def test_adasum_leaves_frozen_parameters_alone_and_takes_in_later_ones(rank, size):
    a, b = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    b.requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([a, b], lr=0.5, momentum=0.9, weight_decay=0.1),
                                         [("a", a), ("b", b)], op=hvd.Adasum)
    for step in range(4):
        a.requires_grad_(step < 2)
        b.requires_grad_(step >= 2)
        optimizer.zero_grad(set_to_none=True)
        before = a.detach().clone(), b.detach().clone()
        ((a + b) * (rank + 1)).sum().backward()
        optimizer.step()
        assert torch.equal(a.detach(), before[0]) == (step >= 2) and torch.equal(b.detach(), before[1]) == (step < 2)
        for values in hvd.allgather_object((a.detach().clone(), b.detach().clone())):
            assert torch.equal(values[0], a.detach()) and torch.equal(values[1], b.detach())


# ---- Saving and copying.

@pytest.mark.parametrize("options", WAYS + [{"op": hvd.Adasum}], ids=str)
def test_a_pickled_optimizer_is_the_one_that_was_wrapped(net, options, rank, size):
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), **options)
    train(net, optimizer, loss_of(net, own(batches(size, 1)[0], rank)))
    file = io.BytesIO()
    torch.save(optimizer, file)
    file.seek(0)
    for loaded in (torch.load(file, weights_only=False), *[pickle.loads(pickle.dumps(optimizer, protocol)) for protocol in range(2, 6)]):
        assert type(loaded) is torch.optim.SGD
        assert loaded.param_groups[0]["momentum"] == 0.9
        for found, expected in zip(loaded.param_groups[0]["params"], net.parameters()):
            assert torch.equal(found, expected)
            assert torch.equal(loaded.state[found]["momentum_buffer"], optimizer.state[expected]["momentum_buffer"])


def test_the_state_of_a_schedule_of_it_is_saved(net):
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)
    torch.save(schedule.state_dict(), io.BytesIO())


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("steps_before", [0, 3])
def test_a_deep_copy_trains_on_all_ranks(net, options, steps_before, rank, size):
    optimizer, reference, plain = pair(net, options)
    data = batches(size, 8)
    for x in data[:steps_before]:
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
    nets = [(net, optimizer), copy.deepcopy((net, optimizer))]
    assert type(nets[1][1]).__mro__[1] is type(optimizer).__mro__[1] and nets[1][0].first.weight is not net.first.weight
    for x in data[steps_before:]:
        for each, its_optimizer in nets:
            train(each, its_optimizer, loss_of(each, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
    for each, _ in nets:
        expect_equal(each, reference)


def test_a_rank_may_copy_alone(net, rank, size):
    optimizer, reference, plain = pair(net, {"groups": 2})
    for x in batches(size, 3):
        if rank == 0:
            copy.deepcopy((net, optimizer))
        train(net, optimizer, loss_of(net, own(x, rank)))
        train(reference, plain, loss_of(reference, x))
    expect_equal(net, reference)


def test_a_shallow_copy_is_refused(net):
    with pytest.raises(TypeError, match="copy.deepcopy would be right"):
        copy.copy(hvd.DistributedOptimizer(sgd(net), net.named_parameters()))


# ---- What goes on in any order.

@pytest.mark.parametrize("options", WAYS, ids=str)
def test_all_of_it_in_one_life(net, options, rank, size):
    """Accumulates, clips, freezes, changes its rate, is saved and loaded."""
    net.extra.requires_grad_(False)
    optimizer, reference, plain = pair(net, {**options, "backward_passes_per_step": 2})
    schedules = [torch.optim.lr_scheduler.StepLR(each, 2, gamma=0.7) for each in (optimizer, plain)]
    data = batches(size, 20)
    for step in range(10):
        for each in (net, reference):
            each.extra.requires_grad_(step >= 4)
            each.last.bias.requires_grad_(step < 6)
        if step == 5:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        plain.zero_grad(set_to_none=step % 2 == 0)
        for x in data[2 * step: 2 * step + 2]:
            loss_of(net, own(x, rank)).backward()
            loss_of(reference, x).backward()
        optimizer.synchronize()
        for each in (net, reference):
            torch.nn.utils.clip_grad_norm_(each.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
        plain.step()
        for schedule in schedules:
            schedule.step()
    expect_equal(net, reference)
    expect_equal_ranks(net)


# ---- Weights that have come to differ.

DRIFT_WAYS = WAYS + [{"op": hvd.Sum}, {"op": hvd.Adasum}, {"compression": hvd.Compression.fp16}]


@pytest.mark.parametrize("options", DRIFT_WAYS, ids=str)
@pytest.mark.parametrize("name", ["first.weight", "last.bias"])
def test_a_weight_that_differs_is_named_with_its_rank_on_all_ranks(net, name, options, rank, size, monkeypatch):
    if size == 1:
        pytest.skip("nobody to differ from")
    monkeypatch.setenv("KOLO_CHECK_DRIFT", "3")
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), **options)
    steps = 0
    with pytest.raises(kolo.errors.FailedPreconditionError) as raised:
        for x in batches(size, 12):
            train(net, optimizer, loss_of(net, own(x, rank)))
            steps += 1
            if steps == 5 and rank == size - 1:
                with torch.no_grad():
                    dict(net.named_parameters())[name].view(-1)[0] += 1e-9
    assert f'weights differ: "{name}" on rank {size - 1} since a step in 4..6 ' in str(raised.value)
    assert steps == 6
    hvd.barrier()


@pytest.mark.parametrize("options", DRIFT_WAYS, ids=str)
def test_weights_that_do_not_differ_are_compared_in_silence(net, options, rank, size, monkeypatch):
    monkeypatch.setenv("KOLO_CHECK_DRIFT", "1")
    net.last.requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), **options)
    for step, x in enumerate(batches(size, 6)):
        net.last.requires_grad_(step > 2)
        train(net, optimizer, loss_of(net, own(x, rank)))
    expect_equal_ranks(net)


def test_weights_are_not_compared_where_the_number_of_steps_is_0(net, rank, size, monkeypatch):
    monkeypatch.setenv("KOLO_CHECK_DRIFT", "0")
    with torch.no_grad():
        net.first.weight += rank
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    for x in batches(size, 3):
        train(net, optimizer, loss_of(net, own(x, rank)))


def test_buffers_and_frozen_parameters_may_differ(net, rank, size, monkeypatch):
    monkeypatch.setenv("KOLO_CHECK_DRIFT", "1")
    with torch.no_grad():
        net.first.weight += rank
    net.first.weight.requires_grad_(False)
    net.register_buffer("average", torch.full((3,), float(rank)))
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    for x in batches(size, 4):
        train(net, optimizer, loss_of(net, own(x, rank)))


def test_weights_of_a_process_set_are_compared_among_its_ranks(net, rank, size, monkeypatch):
    if size < 3:
        pytest.skip("nobody is outside")
    monkeypatch.setenv("KOLO_CHECK_DRIFT", "2")
    ends = hvd.add_process_set([0, 2])
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters(), process_set=ends)
    data = batches(size, 9)
    for x in data[:5]:
        train(net, optimizer, loss_of(net, own(x, rank)))  # rank 1 goes its own way
    if rank == 2:
        with torch.no_grad():
            net.last.bias += 1e-9
    if rank == 1:
        for x in data[5:]:
            train(net, optimizer, loss_of(net, own(x, rank)))
    else:
        with pytest.raises(kolo.errors.FailedPreconditionError, match='"last.bias" on rank 2 since a step in 5..6 '):
            for x in data[5:]:
                train(net, optimizer, loss_of(net, own(x, rank)))
    hvd.remove_process_set(ends)


def test_ranks_count_alike_after_uneven_data(net, rank, size, monkeypatch):
    if size == 1:
        pytest.skip("nobody to differ from")
    monkeypatch.setenv("KOLO_CHECK_DRIFT", "3")
    optimizer = hvd.DistributedOptimizer(sgd(net), net.named_parameters())
    data = batches(size, 20)
    for x in data[:4 + rank]:
        train(net, optimizer, loss_of(net, own(x, rank)))
    hvd.join()
    hvd.broadcast_parameters(net.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    if rank == 1:
        with torch.no_grad():
            net.last.bias += 1e-9
    with pytest.raises(kolo.errors.FailedPreconditionError, match='"last.bias" on rank 1 since a step in 1..3 '):
        for x in data[10:]:
            train(net, optimizer, loss_of(net, own(x, rank)))
