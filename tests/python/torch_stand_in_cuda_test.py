"""kolo.torch on tensors of a GPU that is not there (stand_in_cuda.py): the same results as on the host's tensors, in the
right order, and without a wait of the caller."""
import threading

import pytest
import torch
from stand_in_cuda import gpu, on_gpu, plain, value_of  # noqa: F401

import kolo.torch as hvd
from kolo.torch import staging
from kolo.torch.memory import memory_of

TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.uint8, torch.int32, torch.int64]


def own(rank, rows, dtype=torch.float32):
    return (torch.arange(rows * 3).view(rows, 3) % 5 + rank).to(dtype)


OPERATIONS = {
    "allreduce": lambda to, rank, size, dtype: hvd.allreduce(to(own(rank, 4, dtype))),
    "allreduce_sum": lambda to, rank, size, dtype: hvd.allreduce(to(own(rank, 4, dtype)), op=hvd.Sum, prescale_factor=2.0),
    "allreduce_in_place": lambda to, rank, size, dtype: hvd.allreduce_(to(own(rank, 4, dtype)), op=hvd.Max),
    "grouped_allreduce": lambda to, rank, size, dtype: hvd.grouped_allreduce([to(own(rank, 2, dtype)), to(own(rank, 3, dtype))]),
    "allgather": lambda to, rank, size, dtype: hvd.allgather(to(own(rank, rank + 1, dtype))),
    "grouped_allgather": lambda to, rank, size, dtype: hvd.grouped_allgather([to(own(rank, 2, dtype))]),
    "broadcast": lambda to, rank, size, dtype: hvd.broadcast(to(own(rank, 2, dtype)), size - 1),
    "broadcast_in_place": lambda to, rank, size, dtype: hvd.broadcast_(to(own(rank, 2, dtype)), size - 1),
    "alltoall": lambda to, rank, size, dtype: hvd.alltoall(to(own(rank, size, dtype))),
    "reducescatter": lambda to, rank, size, dtype: hvd.reducescatter(to(own(rank, 7, dtype)), op=hvd.Sum),
    "grouped_reducescatter": lambda to, rank, size, dtype: hvd.grouped_reducescatter([to(own(rank, 7, dtype))]),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_give_what_they_give_on_the_host(operation, dtype, gpu, rank, size):
    run = OPERATIONS[operation]
    expected, found = (run(to, rank, size, dtype) for to in (torch.clone, on_gpu))
    for on_host, made in zip(*([x] if isinstance(x, torch.Tensor) else x for x in (expected, found))):
        assert made.is_cuda and made.dtype is on_host.dtype
        assert value_of(made).equal(on_host)


def test_in_place_operations_give_the_tensor_itself(gpu, rank, size):
    tensor = on_gpu(torch.ones(3))
    assert hvd.allreduce_(tensor, op=hvd.Sum) is tensor
    assert value_of(tensor).tolist() == [size] * 3
    kept = on_gpu(torch.ones(3))
    assert hvd.allreduce(kept, op=hvd.Sum) is not kept
    assert value_of(kept).tolist() == [1.0] * 3


def test_what_the_stream_has_before_is_sent(gpu, rank, size):
    tensor = on_gpu(torch.zeros(3))
    gpu.later(lambda: plain(tensor).fill_(rank + 1.0))
    assert value_of(hvd.allreduce(tensor, op=hvd.Sum)).tolist() == [size * (size + 1) / 2] * 3


def test_what_the_stream_gets_next_sees_the_result(gpu, rank, size):
    tensor, seen = on_gpu(torch.ones(3)), []
    hvd.allreduce_(tensor, op=hvd.Sum)
    gpu.later(lambda: seen.append(plain(tensor).tolist()))
    assert not seen, "the caller has waited for the GPU"
    gpu.synchronize()
    assert seen == [[size] * 3]


def test_the_caller_does_not_wait_for_the_gpu(gpu, rank, size):
    may_go_on = threading.Event()
    tensor = on_gpu(torch.zeros(3))
    gpu.later(lambda: may_go_on.wait(30))
    gpu.later(lambda: plain(tensor).fill_(1))
    handle = hvd.allreduce_async(tensor, op=hvd.Sum)
    assert not hvd.poll(handle)
    may_go_on.set()
    assert value_of(hvd.synchronize(handle)).tolist() == [size] * 3
    assert hvd.synchronize(handle) is None


def test_a_gpu_that_hangs_has_a_deadline(gpu, rank, size, monkeypatch):
    may_go_on = threading.Event()
    gpu.later(lambda: may_go_on.wait(30))
    handle = hvd.allreduce_async(on_gpu(torch.ones(3)), op=hvd.Sum, name="late")
    monkeypatch.setenv("KOLO_STALL_ABORT_S", "0.2")
    with pytest.raises(hvd.HorovodInternalError, match="after 0.2 s the GPU has not finished what comes before late"):
        hvd.synchronize(handle)
    may_go_on.set()
    monkeypatch.setenv("KOLO_STALL_ABORT_S", "30")
    assert value_of(hvd.allreduce(on_gpu(torch.ones(3)), op=hvd.Sum)).tolist() == [size] * 3


def test_calls_without_names_meet_each_other_beside_those_of_the_host(gpu, rank, size):
    handles = []
    for i in range(6):
        value = torch.full((2,), float(i + rank))
        handles.append(hvd.allreduce_async(on_gpu(value) if i % 2 else value, op=hvd.Sum))
    for i, handle in enumerate(handles):
        made = hvd.synchronize(handle)
        assert (value_of(made) if made.is_cuda else made).tolist() == [sum(i + r for r in range(size))] * 2


def test_a_group_may_lie_on_both(gpu, rank, size):
    host, device = hvd.grouped_allreduce([torch.ones(2), on_gpu(torch.ones(3))], op=hvd.Sum)
    assert not host.is_cuda and host.tolist() == [size] * 2
    assert device.is_cuda and value_of(device).tolist() == [size] * 3


@pytest.mark.parametrize("tensor, words", [(torch.ones(6, 4)[:, ::2], "contiguous"),
                                           (torch.ones(2, dtype=torch.complex64), "is not supported")])
def test_wrong_tensors_are_refused_in_the_same_words(tensor, words, gpu, rank, size):
    if size > 1 and rank == 0:
        with pytest.raises(hvd.HorovodInternalError, match="rank 1 refused"):
            hvd.allreduce(on_gpu(torch.ones(2)), name="wrong")
    elif rank == 1 or size == 1:
        with pytest.raises(ValueError, match=words):
            hvd.allreduce(tensor.as_subclass(type(on_gpu(torch.ones(1)))), name="wrong")
    else:
        with pytest.raises(hvd.HorovodInternalError, match="rank 1 refused"):
            hvd.allreduce(on_gpu(torch.ones(2)), name="wrong")
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_what_the_operation_refuses_comes_with_its_result(gpu, size):
    with pytest.raises(NotImplementedError, match="reducescatter has no op adasum"):
        hvd.reducescatter(on_gpu(torch.ones(4)), op=hvd.Adasum)


def test_a_graph_cannot_capture_an_operation(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match="a CUDA graph cannot capture an operation among ranks"):
        hvd.allreduce(on_gpu(torch.ones(4)))


@pytest.fixture
def ranks(size):
    if size == 1:
        pytest.skip("gradients of one rank go nowhere")


def optimizer_of(parameters):
    named = [(f"w{i}", parameter) for i, parameter in enumerate(parameters)]
    return hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0), named_parameters=named)


def gradient(rank, step, place):
    return torch.arange(16 * place + 16, dtype=torch.float32) + rank * 10 + step


def take_steps(optimizer, parameters, rank, size, steps):
    for step in range(steps):
        for place, parameter in enumerate(parameters):
            if parameter.grad is None:
                parameter.grad = on_gpu(gradient(rank, step, place))
            else:  # as the backward pass, in place
                value = gradient(rank, step, place)
                torch.cuda.current_stream().later(lambda grad=parameter.grad, value=value: plain(grad).copy_(value))
        optimizer.synchronize()
        for place, parameter in enumerate(parameters):
            expected = sum(gradient(r, step, place) for r in range(size)) / size
            assert value_of(parameter.grad).allclose(expected), (step, place)


def test_an_optimizer_averages_gradients_of_a_gpu_in_pinned_buckets(gpu, rank, size, ranks):
    parameters = [torch.nn.Parameter(on_gpu(torch.zeros(16 * place + 16))) for place in range(5)]
    optimizer = optimizer_of(parameters)
    take_steps(optimizer, parameters, rank, size, 4)
    addresses = [parameter.grad.data_ptr() for parameter in parameters]
    take_steps(optimizer, parameters, rank, size, 2)
    assert addresses == [parameter.grad.data_ptr() for parameter in parameters], "gradients stay in their buckets"
    assert gpu.pinned, "buckets are pinned"


def test_a_bucket_travels_in_one_copy(gpu, rank, size, ranks, monkeypatch):
    parameters = [torch.nn.Parameter(on_gpu(torch.zeros(16 * place + 16))) for place in range(5)]
    optimizer = optimizer_of(parameters)
    take_steps(optimizer, parameters, rank, size, 2)
    copies, copy_behind = [], staging.copy_behind
    monkeypatch.setattr(staging, "copy_behind", lambda *args: copies.append(args) or copy_behind(*args))
    take_steps(optimizer, parameters, rank, size, 1)
    assert len(gpu.pinned) == 1 and len(copies) == 2


def test_a_graph_cannot_capture_an_optimizers_step(gpu, rank, size, ranks, monkeypatch):
    parameter = torch.nn.Parameter(on_gpu(torch.zeros(16)))
    optimizer = optimizer_of([parameter])
    take_steps(optimizer, [parameter], rank, size, 2)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match="a CUDA graph cannot capture an operation among ranks"):
        optimizer._exchange.start(parameter)


def test_the_caller_does_not_wait_for_gradients_before_the_end_of_a_step(gpu, rank, size, ranks):
    parameter = torch.nn.Parameter(on_gpu(torch.zeros(16)))
    optimizer = optimizer_of([parameter])
    take_steps(optimizer, [parameter], rank, size, 3)
    may_go_on = threading.Event()
    gpu.later(lambda: may_go_on.wait(30))
    gpu.later(lambda: plain(parameter.grad).fill_(7))
    exchange = optimizer._exchange
    exchange.start(parameter)
    may_go_on.set()
    optimizer.synchronize()
    assert value_of(parameter.grad).tolist() == [7] * 16


def test_parameters_on_both_devices_keep_to_the_engine(gpu, rank, size):
    device, host = torch.nn.Parameter(on_gpu(torch.zeros(3))), torch.nn.Parameter(torch.zeros(3))
    optimizer = optimizer_of([device, host])
    for step in range(3):
        device.grad, host.grad = on_gpu(torch.full((3,), float(rank))), torch.full((3,), float(rank))
        optimizer.synchronize()
        assert value_of(device.grad).tolist() == host.grad.tolist() == [(size - 1) / 2] * 3
    assert not gpu.pinned


def test_parameters_are_broadcast(gpu, rank, size):
    parameters = {"w": on_gpu(torch.full((3,), float(rank))), "count": torch.tensor(rank)}
    hvd.broadcast_parameters(parameters, size - 1)
    assert value_of(parameters["w"]).tolist() == [size - 1] * 3 and parameters["count"].item() == size - 1


def test_join_comes_behind_what_was_asked_for(gpu, rank, size):
    handle = hvd.allreduce_async(on_gpu(torch.ones(3)), op=hvd.Sum, name="before")
    hvd.join()
    assert value_of(hvd.synchronize(handle)).tolist() == [size] * 3


def test_unnamed_calls_meet_after_uneven_data(gpu, rank, size):
    for _ in range(2 + rank):
        hvd.allreduce(on_gpu(torch.ones(3)), op=hvd.Sum)
    hvd.join()
    assert value_of(hvd.allreduce(on_gpu(torch.ones(3)), op=hvd.Sum)).tolist() == [size] * 3


def test_what_lies_on_a_gpu_is_not_read_as_memory_of_the_host(gpu):
    with pytest.raises(ValueError, match=r"Tensor is on cuda:0; memory of the host is asked for here: use tensor.cpu\(\)"):
        memory_of(on_gpu(torch.ones(2)))


def test_a_state_dict_of_a_gpu_is_saved(gpu, tmp_path):
    hvd.save_checkpoint(tmp_path / "m", {"w": on_gpu(torch.arange(6.0).view(2, 3))})
    assert hvd.load_checkpoint(tmp_path / "m")["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_elastic_state_keeps_what_is_on_a_gpu_on_the_host(gpu, rank, tmp_path):
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight = torch.nn.Parameter(on_gpu(torch.ones(1, 2)))
    state = hvd.elastic.TorchState(model, directory=str(tmp_path))
    state.commit()
    with torch.no_grad():
        model.weight.zero_()
    state.restore()
    assert model.weight.is_cuda and value_of(model.weight).tolist() == [[1, 1]]
    if rank == 0:
        kept = torch.load(tmp_path / "elastic_state.pt", weights_only=False)
        assert not kept["state of model"]["weight"].is_cuda
