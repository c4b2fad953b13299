"""elastic_torch.py FOLDER STEPS SAMPLES: a training that commits each step to FOLDER and tells what it does. It sleeps in each step until
FOLDER/hurry is there."""
import json
import os
import sys
import time

import torch

import kolo.torch as hvd

folder, steps, samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
BATCH = 2
hvd.init()
torch.manual_seed(hvd.rank())
data = torch.utils.data.TensorDataset(torch.arange(samples), torch.randn(samples, 4, generator=torch.Generator().manual_seed(1)))
model = torch.nn.Linear(4, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), named_parameters=model.named_parameters())
sampler = hvd.elastic.ElasticSampler(data, seed=5)
state = hvd.elastic.TorchState(model, optimizer, directory=folder, epoch=0, step=0, sampler=sampler, taken=[0] * samples, resets=[])


def tell(text):
    print(text, flush=True)


def tell_on_rank_0(text):
    if hvd.rank() == 0:
        tell(text)


def note_reset():
    state.resets.append(hvd.size())


state.register_reset_callbacks([note_reset])


def finish_epoch():
    tell_on_rank_0(f"epoch {state.epoch} had {sum(n > 0 for n in state.taken)} of {samples} samples, {sum(n > 1 for n in state.taken)} of them twice")
    state.epoch += 1
    state.taken = [0] * samples
    sampler.set_epoch(state.epoch)


@hvd.elastic.run
def train(state):
    tell_on_rank_0(f"starts at step {state.step} with {hvd.size()} ranks")
    if not state.resets:
        state.resets.append(hvd.size())
    tell_on_rank_0(f"resets: {state.resets}")
    while state.step < steps:
        loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler)
        for number, (indices, x) in enumerate(loader):
            optimizer.zero_grad()
            loss = (model(x).squeeze(1) - x.sum(1)).square().mean()
            loss.backward()
            optimizer.step()
            sampler.record_batch(number, BATCH)
            for index in sum(hvd.allgather_object(indices.tolist()), []):
                state.taken[index] += 1
            state.step += 1
            if not os.path.exists(os.path.join(folder, "hurry")):
                time.sleep(0.05)
            tell_on_rank_0(f"commits {state.step}")
            state.commit()
            if state.step == steps:
                return
        finish_epoch()


train(state)
weights = torch.cat([values.flatten() for values in (model.weight, model.bias)]).tolist()
tell("ends: " + json.dumps({"rank": hvd.rank(), "step": state.step, "weights": repr(weights), "finite": bool(torch.tensor(weights).isfinite().all())}))
