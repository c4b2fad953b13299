"""A small convolution net on MNIST's digits, with kolo.torch: resumes from its checkpoint when it is started again.

mpirun -n 2 python3 mnist.py --data ~/mnist --checkpoint-dir digits
kolorun -n 2 --restarts 3 -- python3 mnist.py --data ~/mnist --checkpoint-dir digits
"""
import argparse
import glob
import gzip
import os

import numpy as np
import torch
from torch.nn import functional

import kolo
import kolo.torch as hvd


def read_idx(folder, name):
    """An array of the format in which the digits are published (http://yann.lecun.com/exdb/mnist)."""
    path = glob.glob(os.path.join(folder, name + "*"))[0]
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        content = file.read()
    dims = np.frombuffer(content, ">i4", content[3], 4)
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * len(dims)).reshape(dims).copy())


def samples(folder, part):
    images, labels = read_idx(folder, f"{part}-images"), read_idx(folder, f"{part}-labels")
    return torch.utils.data.TensorDataset(images[:, None].float() / 255, labels.long())


def make_model():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 5), torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 5),
        torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(512, 10))


def resume(model, optimizer, folder):
    """The epoch to go on with, on every rank. Rank 0 alone looks into the folder."""
    epoch = 0
    if hvd.rank() == 0 and folder:
        os.makedirs(folder, exist_ok=True)
        saved = sorted(glob.glob(os.path.join(folder, "model.ckpt-*.index.json")), key=os.path.getmtime)
        if saved:
            arrays = kolo.load_checkpoint(folder)
            model.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items() if name != "epoch"})
            epoch = int(arrays["epoch"])
    hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    return hvd.broadcast_object(epoch, 0)


def save(model, epoch, folder):
    arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    kolo.save_checkpoint(os.path.join(folder, f"model.ckpt-{epoch}"), {**arrays, "epoch": np.array(epoch)}, epoch)


def accuracy(model, test, batch_size):
    """Over all ranks; each looks at its share."""
    right, seen = torch.zeros(1), torch.zeros(1)
    share = torch.utils.data.Subset(test, range(hvd.rank(), len(test), hvd.size()))
    with torch.no_grad():
        for images, labels in torch.utils.data.DataLoader(share, batch_size):
            right += (model(images).argmax(1) == labels).sum()
            seen += len(labels)
    return (hvd.allreduce(right, op=hvd.Sum) / hvd.allreduce(seen, op=hvd.Sum)).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=os.path.join(os.environ.get("KOLO_DATA_DIR", "data"), "mnist"))
    parser.add_argument("--epochs", type=int, default=2, help="counted from the first start on")
    parser.add_argument("--samples", type=int, default=0, help="train with so many only; 0: all")
    parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
    parser.add_argument("--checkpoint-dir", default="", help="saved there after each epoch; left out: nowhere")
    options = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    train, test = samples(options.data, "train"), samples(options.data, "t10k")
    if options.samples:
        train = torch.utils.data.Subset(train, range(options.samples))
    model = make_model()
    # A batch of all ranks is size() times as large.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * hvd.size(), momentum=0.5)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    begin = resume(model, optimizer, options.checkpoint_dir)
    if begin and hvd.rank() == 0:
        print(f"resumed behind epoch {begin}", flush=True)
    sampler = torch.utils.data.DistributedSampler(train, hvd.size(), hvd.rank())
    loader = torch.utils.data.DataLoader(train, options.batch_size, sampler=sampler)
    for epoch in range(begin, options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        mean_loss, share_right = hvd.allreduce(loss.detach()).item(), accuracy(model, test, options.batch_size)
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss {mean_loss:.4f}, right {100 * share_right:.2f} %", flush=True)
            if options.checkpoint_dir:
                save(model, epoch + 1, options.checkpoint_dir)


main()
