"""kolo.torch.elastic: what a start of kolorun's goes on from."""
import json
import os
import subprocess
import sys

import pytest
import torch

import kolo
import kolo.torch as hvd
from jobs import environment, finished

KOLORUN = os.path.join(os.environ["KOLO_BIN_DIR"], "kolorun")

# Prints what each rank takes; ends in the middle of epoch 1 where there are 3 ranks.
PROGRAM = """
import json, sys, torch
import kolo, kolo.torch as hvd
hvd.init()
BATCH = 4
data = torch.utils.data.TensorDataset(torch.arange(101))
sampler = hvd.elastic.ElasticSampler(data, seed=5)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
state = hvd.elastic.TorchState(model, optimizer, directory=sys.argv[1], epoch=0, batch=0, sampler=sampler)
resets = []
state.register_reset_callbacks([lambda: resets.append(hvd.size())])

@hvd.elastic.run
def train(state):
    print(json.dumps({"resets": resets, "restart": kolo.elastic_restart()}), flush=True)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler)
    while state.epoch < 2:
        for number, (batch,) in enumerate(loader):
            sampler.record_batch(number, BATCH)
            print(json.dumps({"epoch": state.epoch, "rank": hvd.rank(), "samples": batch.tolist()}), flush=True)
            state.batch += 1
            state.commit()
            if hvd.size() == 3 and state.epoch == 1 and number == 2:
                sys.exit(0)
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()

train(state)
"""


def rows(ranks, folder, **variables):
    job = subprocess.Popen([KOLORUN, "-q", "-n", str(ranks), "--", sys.executable, "-c", PROGRAM, str(folder)],
                           env=environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           stdin=subprocess.DEVNULL)
    code, output, errors = finished(job)
    assert code == 0, errors
    return [json.loads(line[line.index("{"):]) for line in output.splitlines() if "{" in line]


def test_other_ranks_go_on_with_the_samples_that_are_left(tmp_path):
    before = rows(3, tmp_path)
    after = rows(2, tmp_path, KOLO_RESTART="1:3:5:0.5:node3")
    starts = [row for row in after if "resets" in row]
    assert starts == [{"resets": [2], "restart": [1, ["node3"], 3, 5, 0.5]}] * 2
    assert all(row["resets"] == [] for row in before if "resets" in row)
    of_epoch = [[row for row in part if row.get("epoch") == 1] for part in (before, after)]
    taken = [[sample for row in part for sample in row["samples"]] for part in of_epoch]
    assert len(taken[0]) == len(set(taken[0])) == 36
    # The ranks draw as many each: one sample comes twice where an odd number is left.
    assert not set(taken[0]) & set(taken[1]) and set(taken[0]) | set(taken[1]) == set(range(101))
    assert len(taken[1]) == 66
    assert not any(row.get("epoch") == 0 for row in after)


def test_the_same_ranks_call_no_reset_callbacks(tmp_path):
    started = [row for row in rows(2, tmp_path, KOLO_RESTART="1:2:5:0.5:") if "resets" in row]
    assert [row["resets"] for row in started] == [[], []]


def test_a_start_that_a_later_one_has_replaced_writes_nothing(tmp_path, monkeypatch):
    """Rank 0 on a host that was taken for lost goes on within a commit."""
    hvd.init()
    earlier, later, last = (hvd.elastic.ObjectState(directory=str(tmp_path), step=step) for step in (1, 2, 3))
    earlier.sync()
    save = torch.save

    def save_when_the_later_start_has_committed(values, path):
        with open(path, "wb") as begun:
            begun.write(b"the first half")
            monkeypatch.setattr(torch, "save", save)
            later.sync()
            later.commit()
            begun.write(b"the rest")

    monkeypatch.setattr(torch, "save", save_when_the_later_start_has_committed)
    with pytest.raises(kolo.errors.FailedPreconditionError, match=f"has written nothing: a later start of this program has taken {tmp_path}"):
        earlier.commit()
    last.sync()
    assert last.step == 2
    later.commit()  # who only looks does not take the directory
    assert sorted(os.listdir(tmp_path)) == ["elastic_state.holder", "elastic_state.pt"]


def as_rank(monkeypatch, rank, size):
    monkeypatch.setattr(kolo, "rank", lambda: rank)
    monkeypatch.setattr(kolo, "size", lambda: size)


def test_the_ranks_share_out_what_is_left(monkeypatch):
    parts = []
    for rank in range(3):
        as_rank(monkeypatch, rank, 3)
        sampler = hvd.elastic.ElasticSampler(range(20), seed=1)
        sampler.set_epoch(4)
        sampler.load_state_dict({"epoch": 4, "processed_indices": {1, 2, 3, 4, 5}})
        parts.append(list(sampler))
        assert len(sampler) == 5
    assert sorted(index for part in parts for index in part) == [0, *range(6, 20)]


def test_an_epoch_has_an_order_of_its_own(monkeypatch):
    as_rank(monkeypatch, 0, 1)
    sampler = hvd.elastic.ElasticSampler(range(30))
    first = list(sampler)
    sampler.record_batch(0, 10)
    assert sampler.processed_indices == set(first[:10])
    sampler.set_epoch(1)
    assert sorted(sampler) == list(range(30)) and list(sampler) != first
    assert list(hvd.elastic.ElasticSampler(range(5), shuffle=False)) == [0, 1, 2, 3, 4]


def test_a_first_start_has_nothing_before_it():
    assert kolo.elastic_restart() == kolo.ElasticRestart(0, [], 0, None, 0.0)


@pytest.mark.parametrize("value", ["1", "x:1:2:3:"])
def test_what_kolorun_does_not_write_is_refused(value, monkeypatch):
    program = "import kolo; kolo.elastic_restart()"
    done = subprocess.run([sys.executable, "-c", program], env=environment(KOLO_RESTART=value), capture_output=True, text=True,
                          timeout=60)
    assert done.returncode != 0 and "KOLO_RESTART=" in done.stderr
