#!/usr/bin/env python3
"""kolo's pictures for training beside torchvision's: the same files, turn about, one thread each.

Usage: python3 bench/compare_pictures.py [--program build/release/bin/kolo-bench] [--data FOLDER] [--side 224] [--rounds 5]
                                         [--seconds 2] [--json]

Without --data it makes 48 pictures of 500 x 375 pixels each as JPEG, PNG and WebP. For each kind of file it prints how many a
second are read, decoded and cropped in the middle, and how many are also changed as --augment crop,rotate:15,flip,color:0.2
does: median and best of the rounds. torchvision runs its transforms of Pillow's images, as its ImageFolder does.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

AUGMENT = "crop,rotate:15,flip,color:0.2"
KINDS = {"JPEG": (".jpg", {"quality": 90}), "PNG": (".png", {}), "WebP": (".webp", {"quality": 80})}


def made_up(number):
    """Coarse shapes, finer ones above them, and a little noise, as a photograph has."""
    numbers = numpy.random.default_rng(number)
    pixels = numpy.zeros((375, 500, 3))
    for side, height in ((3, 90), (12, 50), (60, 25), (250, 8)):
        coarse = Image.fromarray(numbers.integers(0, 256, (side, side, 3), dtype=numpy.uint8))
        pixels += height * (numpy.asarray(coarse.resize((500, 375), Image.BICUBIC)) / 127.5 - 1)
    return Image.fromarray((128 + pixels + numbers.normal(0, 3, pixels.shape)).clip(0, 255).astype(numpy.uint8))


def make_pictures(folder):
    for number in range(48):
        picture = made_up(number)
        for kind, (ending, options) in KINDS.items():
            (folder / kind).mkdir(exist_ok=True)
            picture.save(folder / kind / f"{number}{ending}", kind, **options)
    return {kind: folder / kind for kind in KINDS}


def torchvision_speed(files, change, seconds):
    def read():
        for file in files:
            with Image.open(file) as picture:
                change(picture.convert("RGB"))

    read()
    start, passes = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        read()
        passes += 1
    return passes * len(files) / (time.perf_counter() - start)


def kolo_speed(program, folder, side, augment, seconds):
    command = [program, "pictures", "--data", folder, "--side", side, "--seconds", seconds, "--json"]
    done = subprocess.run([*map(str, command), *(["--augment", augment] if augment else [])], check=True, capture_output=True,
                          text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return json.loads(done.stdout)["pictures_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", default="build/release/bin/kolo-bench")
    parser.add_argument("--data", type=pathlib.Path, help="a folder of pictures")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json", action="store_true", help="each line is a JSON object")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bilinear, side = InterpolationMode.BILINEAR, options.side
    changes = {"": transforms.Compose([transforms.Resize(side, bilinear), transforms.CenterCrop(side), transforms.ToTensor()]),
               AUGMENT: transforms.Compose([transforms.RandomResizedCrop(side, interpolation=bilinear),
                                            transforms.RandomRotation(15, bilinear), transforms.RandomHorizontalFlip(),
                                            transforms.ColorJitter(0.2, 0.2, 0.2), transforms.ToTensor()])}
    with tempfile.TemporaryDirectory() as made:
        folders = {options.data.name: options.data} if options.data else make_pictures(pathlib.Path(made))
        for kind, folder in folders.items():
            files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"))
            for augment, change in changes.items():
                found = {"kolo": [], "torchvision": []}
                for _ in range(options.rounds):
                    found["kolo"].append(kolo_speed(options.program, folder, side, augment, options.seconds))
                    found["torchvision"].append(torchvision_speed(files, change, options.seconds))
                row = {"pictures": kind, "augment": augment,
                       **{name: round(statistics.median(speeds), 1) for name, speeds in found.items()},
                       **{f"{name}_best": round(max(speeds), 1) for name, speeds in found.items()}}
                row["times_as_fast"] = round(row["kolo"] / row["torchvision"], 2)
                print(json.dumps(row) if options.json else
                      f"{kind:>6} {augment or 'as they are':<32} kolo {row['kolo']:>7} a second (best {row['kolo_best']})   "
                      f"torchvision {row['torchvision']:>7} (best {row['torchvision_best']})   {row['times_as_fast']} times as fast",
                      flush=True)


if __name__ == "__main__":
    main()
