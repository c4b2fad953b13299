#!/usr/bin/env python3
"""What a step asks of a GPU: launches, copies, and how often the host waits. counts.json holds the numbers, so that whoever
adds one says so in a diff; `counts_test.py --write` writes them anew."""
import json
import pathlib
import subprocess
import sys
import unittest

from fake_gpu import FAKE, GPU, WHOLE, FakeGpuTest
from programs import environment, run

COUNTS = pathlib.Path(__file__).resolve().with_name("counts.json")
GPT = ("--models", "gpt", "--layers", 2, "--width", 32, "--heads", 2, "--context", 16)
# The two large ones with the smallest pictures that vgg16 takes: convolutions here are loops of the host.
MODELS = {"mlp": ("--models", "mlp"), "lenet": ("--models", "lenet"), "resnet20": ("--models", "resnet20"),
          "resnet50": ("--models", "resnet50", "--side", 32), "vgg16": ("--models", "vgg16", "--side", 32),
          "gpt": GPT, "gpt with dropout": (*GPT, "--dropout", 0.1)}
LARGE = ("resnet50", "vgg16")
COUNTED = ("launches", "kept_nodes", "copies", "syncs")


class Counts(FakeGpuTest):
    def step_of(self, model, steps=5, **env):
        done = run("kolo-bench", "train", *MODELS[model], "--batch", 1, "--steps", steps, "--json", "--device", "gpu", "--threads", 1,
                   deadline=600, **{**GPU, "KOLO_CUDA_COUNT": 1, **env})
        self.assertEqual(done.code, 0, done.err[-2000:])
        return json.loads(done.out.splitlines()[-1])

    def counts_of(self, model, **env):
        step = self.step_of(model, **env)
        return {name: step[name] for name in COUNTED}

    def test_a_step_asks_for_no_more_than_is_written_down(self):
        counts = json.loads(COUNTS.read_text())
        self.assertEqual(list(counts), list(MODELS))
        for model, expected in counts.items():
            with self.subTest(model=model):
                self.assertEqual(self.counts_of(model), expected)

    def test_a_batch_is_read_into_memory_that_the_gpu_copies_from(self):
        """One that is not pinned ends the process."""
        args = ("--model", "mlp", "--steps", 12, "--batch-size", 64)  # 196 KiB
        done = run("kolo-train", "--data", self.folder, "--json", "--threads", 1, "--device", "gpu", *args, **GPU, KOLO_FAKE_CUDA_REFUSE="feeds")
        self.assertEqual(done.code, 0, done.err[-2000:])

    def test_a_replayed_step_is_one_launch_and_one_wait(self):
        counts = self.counts_of("lenet")
        self.assertEqual((counts["launches"], counts["syncs"]), (1, 1))

    def test_replayed_steps_have_the_bits_of_steps_node_by_node(self):
        """Ten steps come before the first that is timed. vgg16 has no kernel that lenet lacks: it is tried by night."""
        for model in MODELS:
            if model == "vgg16" and not WHOLE:
                continue
            with self.subTest(model=model):
                losses = {choice: self.step_of(model, steps=2 if model in LARGE else 20, KOLO_CUDA_GRAPHS=choice, KOLO_CUDA_COUNT=0)["loss"]
                          for choice in ("0", "check")}
                self.assertEqual(losses["0"], losses["check"])

    def test_a_graph_that_does_other_work_is_told_in_its_first_launch(self):
        """It has lost a kernel, or the positions of its random numbers were not written."""
        for model, bug in (("mlp", "graph"), ("gpt", "graph"), ("gpt with dropout", "numbers")):
            with self.subTest(model=model, bug=bug):
                done = run("kolo-bench", "train", *MODELS[model], "--batch", 1, "--steps", 3, "--json", "--device", "gpu",
                           "--threads", 1, **{**GPU, "KOLO_CUDA_GRAPHS": "check", "KOLO_FAKE_CUDA_BREAK": bug})
                self.assertEqual(done.code, 1, done.err[-2000:])
                self.assertRegex(done.err, "kept work makes other bits than the same work node by node, the first of them in the memory that node .* writes last")

    def test_a_graph_that_goes_wrong_later_is_told_in_its_fiftieth_launch(self):
        args = ("--models", "mlp", "--batch", 1, "--steps", 60, "--json", "--device", "gpu", "--threads", 1)
        broken = {**GPU, "KOLO_FAKE_CUDA_BREAK": "late"}
        self.assertEqual(run("kolo-bench", "train", *args, **broken).code, 0)
        done = run("kolo-bench", "train", *args, **broken, KOLO_CUDA_GRAPHS="check")
        self.assertEqual(done.code, 1, done.err[-2000:])
        self.assertIn("kept work makes other bits", done.err)

    def test_a_run_that_does_not_look_for_its_end_sleeps_until_then(self):
        sleeps = []
        for microseconds in (0, 1000000):
            log = self.folder / "calls"
            self.step_of("mlp", KOLO_GPU_SPIN_US=microseconds, KOLO_FAKE_CUDA_LOG=log)
            sleeps.append(log.read_text().count("cudaEventSynchronize"))
        self.assertGreater(sleeps[0], sleeps[1] + 5)  # fences sleep as well

    def test_nothing_is_kept_where_nobody_wants_it(self):
        counts = self.counts_of("mlp", KOLO_CUDA_GRAPHS="0")
        self.assertEqual(counts["kept_nodes"], 0)
        self.assertEqual(counts["launches"], json.loads(COUNTS.read_text())["mlp"]["kept_nodes"])

    def test_graphs_of_other_frames_and_numbers_of_other_kernels_are_told_in_the_first_launch(self):
        for test, bug in (("Frames.*", "frame"), ("Draws.OfKeptStepsAreTheCpus", "slot")):
            for broken in ("", bug):
                with self.subTest(test=test, bug=broken):
                    done = subprocess.run([FAKE.parent / "fake_cuda.draws_test", f"--gtest_filter={test}"], capture_output=True, text=True, timeout=120,
                                          env=environment(**GPU, KOLO_CUDA_GRAPHS="check", KOLO_FAKE_CUDA_BREAK=broken))
                    self.assertEqual(done.returncode, 1 if broken else 0, done.stdout + done.stderr)
                    self.assertEqual("kept work makes other bits" in done.stdout, broken == bug)

    def test_rows_of_embeddings_are_updated_as_on_the_cpu(self):
        """128 tokens of 65: most rows are named twice."""
        args = ("--batch", 8, "--steps", 20, "--json", "--threads", 1)
        for optimizer in ("momentum", "adam", "sgd"):
            with self.subTest(optimizer=optimizer):
                losses = {}
                for device, env in (("gpu", GPU), ("cpu", {})):
                    done = run("kolo-bench", "train", *GPT, *args, "--device", device, "--optimizer", optimizer, **env)
                    self.assertEqual(done.code, 0, done.err[-2000:])
                    losses[device] = json.loads(done.out.splitlines()[-1])["loss"]
                self.assertAlmostEqual(losses["gpu"] / losses["cpu"], 1, delta=1e-3)

    def test_copies_that_stop_the_host_are_seen(self):
        """As if the memory that copies go to were not pinned."""
        log = self.folder / "calls"
        self.step_of("mlp", KOLO_FAKE_CUDA_LOG=log)
        usual = log.read_text().count("that stops the host")
        self.step_of("mlp", KOLO_FAKE_CUDA_LOG=log, KOLO_FAKE_CUDA_BREAK="pinned")
        steps = 5  # at least, each with a loss
        self.assertGreaterEqual(log.read_text().count("that stops the host"), usual + steps)

    def test_where_nothing_can_be_kept_steps_run_node_by_node(self):
        for call in ("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate"):
            with self.subTest(call=call):
                step = self.step_of("mlp", KOLO_FAKE_CUDA_FAIL=f"{call}:900")
                self.assertEqual(step["loss"], self.step_of("mlp", KOLO_CUDA_GRAPHS="0")["loss"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        case = Counts()
        case.setUp()
        counts = {model: case.counts_of(model) for model in MODELS}
        case.doCleanups()
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
    else:
        unittest.main()
