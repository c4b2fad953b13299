#!/usr/bin/env python3
"""kolo-train on GPUs that are not there."""
import json
import unittest

from fake_gpu import CALM, GPU, HOSTS_RATE, WHOLE, FakeGpuTest, of_each_kind
from programs import run

MEMORY, ILLEGAL_ADDRESS, INVALID_VALUE = 2, 700, 1
# What may fail without harm: something is given back, less memory is taken at a time, or another kernel.
TOLERATED = ("cudaMalloc", "cudaFree", "cudaFreeHost", "cudaStreamDestroy", "cudaEventDestroy", "cudaGraph", "cublasLt",
             "cudaGetDeviceProperties", "cudaDriverGetVersion")  # asked for a library's handle, without which kolo's own kernels compute
UNNAMED = ("cudaDriverGetVersion", "cudaGetDeviceCount")  # whether there is a GPU at all
CAPTURE = ("cudaStreamBeginCapture", "cudaGraphUpload")  # what fails between the two is put node by node instead

MLP = ("--model", "mlp", "--steps", 3)  # node by node, captured, replayed
# Small, with a graph that draws numbers; by a program with one thread, whose calls have an order.
GPT = ("train", "--models", "gpt", "--layers", 1, "--width", 16, "--heads", 2, "--context", 16, "--dropout", 0.1, "--batch", 1, "--steps", 3,
       "--json", "--device", "gpu", "--threads", 1)

WAITING = {"cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cudaDeviceSynchronize"}


class Training(FakeGpuTest):
    def test_losses_are_those_of_the_cpu(self):
        for model in ("mlp", "lenet"):
            with self.subTest(model=model):
                args = ("--model", model, "--steps", 20, *CALM)
                self.assert_close(self.losses("gpu", *args), self.losses("cpu", *args))

    def test_optimizers_with_slots_update_as_on_the_cpu(self):
        for optimizer, rate in (("momentum", 1e-3), ("adam", 1e-5), ("lion", 1e-6)):
            with self.subTest(optimizer=optimizer):
                args = ("--model", "mlp", "--steps", 10, "--optimizer", optimizer, "--learning-rate", rate)
                self.assert_close(self.losses("gpu", *args), self.losses("cpu", *args))

    def test_two_ranks_share_a_gpu(self):
        args = ("--model", "lenet", "--steps", 10, *CALM)
        self.assert_close(self.losses("gpu", *args, ranks=2), self.losses("cpu", *args, ranks=2))

    def test_two_ranks_have_a_gpu_each(self):
        args = ("--model", "mlp", "--steps", 10, *CALM)
        gpu = self.losses("gpu", *args, ranks=2, KOLO_FAKE_CUDA_GPUS=2)
        self.assert_close(gpu, self.losses("cpu", *args, ranks=2))

    def test_ranks_that_share_the_updates_gather_them_by_the_host(self):
        args = ("--model", "mlp", "--steps", 5, *CALM, "--sharded")
        self.assert_close(self.losses("gpu", *args, ranks=2), self.losses("cpu", *args, ranks=2))

    def test_checkpoints_go_from_gpu_to_cpu_and_back(self):
        args = ("--model", "lenet", "--optimizer", "momentum", "--learning-rate", 0.001)
        whole = self.losses("cpu", *args, "--steps", 12)
        parts = {}
        for steps, device in ((4, "gpu"), (8, "cpu"), (12, "gpu")):
            parts.update(self.losses(device, *args, "--steps", steps, "--checkpoint-dir", self.folder / "checkpoints"))
        self.assert_close(parts, whole)

    def test_residual_networks_train_as_on_the_cpu(self):
        # Normalization over eight small images makes more of last bits than other layers do.
        args = ("--model", "resnet20", "--steps", 20, "--optimizer", "sgd", "--learning-rate", 0.0001)
        self.assert_close(self.losses("gpu", *args), self.losses("cpu", *args), delta=1e-3)

    def test_shortened_accumulated_and_scheduled_gradients_are_those_of_the_cpu(self):
        args = ("--model", "mlp", "--steps", 6, "--optimizer", "lamb", "--learning-rate", 1e-4, "--weight-decay", 0.01,
                "--clip-norm", 0.5, "--backward-passes", 2, "--schedule", "cosine", "--warmup", 2)
        self.assert_close(self.losses("gpu", *args), self.losses("cpu", *args))

    def test_gradients_travel_in_fewer_bits_as_those_of_the_cpu(self):
        for compression in ("fp16", "bf16", "powersgd:2", "topk:0.1"):
            with self.subTest(compression=compression):
                args = ("--model", "mlp", "--steps", 4, *CALM, "--compression", compression)
                self.assert_close(self.losses("gpu", *args, ranks=2), self.losses("cpu", *args, ranks=2))

    def test_matrix_products_without_cublas_are_those_of_the_cpu(self):
        args = ("--model", "mlp", "--steps", 5, *CALM)
        self.assert_close(self.losses("gpu", *args, KOLO_CUDA_LIBRARIES=""), self.losses("cpu", *args))


class Placement(FakeGpuTest):
    """What a model trains with has a kernel for GPUs, but for what decides and what talks to other ranks."""

    ON_THE_HOST = {"_Recv", "_Fence", "BranchGuard", "BucketAllReduce", "reduce", "NoOp", "CosineDecay"}

    def ops_on_the_host(self, *args, ranks=1):
        trace = self.folder / "trace.json"
        self.assert_ok(self.train("gpu", "--steps", 3, "--trace", trace, *args, ranks=ranks))
        events = json.loads(trace.read_text())["traceEvents"]
        lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        return {e["cat"] for e in events if e["ph"] == "X" and not lanes[e["tid"]].endswith("stream")}

    def test_all_of_a_step_is_on_the_gpu(self):
        for args in (("--model", "lenet"), ("--model", "resnet20"), ("--model", "mlp", "--optimizer", "lamb", "--clip-norm", 1),
                     ("--model", "mlp", "--optimizer", "lars", "--backward-passes", 2, "--schedule", "cosine")):
            with self.subTest(args=args):
                self.assertLessEqual(self.ops_on_the_host(*args), self.ON_THE_HOST)

    def test_compression_is_on_the_gpu(self):
        self.assertLessEqual(self.ops_on_the_host("--model", "mlp", "--compression", "fp16", ranks=2), self.ON_THE_HOST)


class Failures(FakeGpuTest):
    """Each call fails once: one line says so, and nothing is left behind."""

    def calls_of(self, program="kolo-train", **env):
        log = self.folder / "calls"
        env["KOLO_FAKE_CUDA_LOG"] = log
        result = self.train("gpu", *MLP, **env) if program == "kolo-train" else run(program, *GPT, **{**GPU, **env})
        return result, log.read_text().split("\n")[:-1]

    def assert_failure_is_told(self, k, code, program="kolo-train"):
        result, calls = self.calls_of(program, KOLO_FAKE_CUDA_FAIL=f"{k}:{code}")
        if k > len(calls):  # how often some calls come depends on who is there first: nothing failed
            self.assert_ok(result)
            return
        name = calls[k - 1]
        message = f"call {k}, {name}, fails with {code}: exit code {result.code}\n{result.err[-3000:]}"
        only_gives_back = all(later.startswith((*TOLERATED, "cudaSetDevice")) or later.endswith(" ahead") for later in calls[k - 1:])
        begins = [i for i, later in enumerate(calls[:k]) if later == CAPTURE[0]]
        # A capture's own stream is made when steps run already.
        # Where one fails right before it, nothing is captured.
        captures = CAPTURE[0] not in calls or (bool(begins) and CAPTURE[1] not in calls[begins[-1]:k - 1]) or (
            name == "cudaStreamCreateWithFlags" and "cudaEventRecord" in calls[:k - 1])
        # Nobody may have asked for a batch that could not be sent ahead.
        if result.code == 0 and (name.startswith(TOLERATED) or only_gives_back or captures or name.endswith(" ahead")):
            return
        self.assertEqual(result.code, 1, message)
        own = [line for line in result.err.splitlines() if line.startswith(f"{program}:")]
        self.assertEqual(len(own), 1, message)
        # A lost context may be met by another call first.
        if name.startswith(("cuda", "cublasLt")) and name not in UNNAMED and code != ILLEGAL_ADDRESS:
            self.assertIn(name.removesuffix(" ahead"), own[0], message)
        self.assertNotIn("terminate called", result.err, message)
        self.assertNotIn("fake_cuda:", result.err, message)

    def test_every_kind_of_call_may_fail_first_and_last(self):
        result, calls = self.calls_of()
        self.assert_ok(result)
        places = {}
        for k, name in enumerate(calls, 1):
            places.setdefault(name, []).append(k)
        for name, numbers in places.items():
            for k in {numbers[0], numbers[-1]}:
                with self.subTest(name=name, k=k):
                    self.assert_failure_is_told(k, MEMORY if name == "cudaMalloc" else INVALID_VALUE)
        self.assertTrue({"cudaHostAlloc", "cudaGraphInstantiate", "cudaGraphUpload", "cudaGraphLaunch"} <= {name.removesuffix(" ahead") for name in places})

    def test_each_call_of_a_kept_step_may_fail(self):
        """From the capture on: three of each function."""
        result, calls = self.calls_of()
        self.assert_ok(result)
        begin, last = calls.index(CAPTURE[0]) + 1, len(calls) - calls[::-1].index("cudaGraphLaunch")
        for k in of_each_kind(calls, begin, last):
            with self.subTest(k=k, name=calls[k - 1]):
                self.assert_failure_is_told(k, INVALID_VALUE)

    def test_every_call_of_a_step_of_gpt_may_fail(self):
        """Some thirty of them, those of the capture and the launches among them."""
        result, calls = self.calls_of("kolo-bench")
        self.assert_ok(result)
        begins = [k for k, name in enumerate(calls, 1) if name.startswith("cudaStreamBeginCapture")]
        self.assertGreater(len(begins), 0)
        stride = 1 if WHOLE else max(1, len(calls) // 10)
        chosen = set(range(1, len(calls) + 1, stride)) | set(range(begins[0], begins[0] + 4))
        of_graphs = [name if name.startswith(("cudaGraph", "cudaStreamEndCapture")) else "" for name in calls]
        chosen |= {k for k in of_each_kind(of_graphs) if of_graphs[k - 1]}
        for k in sorted(chosen):
            with self.subTest(k=k, name=calls[k - 1]):
                self.assert_failure_is_told(k, INVALID_VALUE, "kolo-bench")
        for k in range(len(calls) // 8, len(calls), len(calls) // (8 if WHOLE else 4)):
            with self.subTest(k=k, name=calls[k - 1], lost=True):
                self.assert_failure_is_told(k, ILLEGAL_ADDRESS, "kolo-bench")

    def test_memory_that_is_short_is_asked_for_once_more(self):
        for name in ("cudaMalloc", "cudaHostAlloc"):
            with self.subTest(name=name):
                result, calls = self.calls_of("kolo-bench", KOLO_FAKE_CUDA_FAIL=f"first {name}:{MEMORY}")
                self.assertIn("failed to allocate", self.assert_ok(result).err)
                self.assertGreater(calls.count(name), 1)

    def test_a_lost_context_ends_the_run_wherever_it_comes(self):
        result, calls = self.calls_of()
        self.assert_ok(result)
        for k in range(1, len(calls), max(1, len(calls) // (12 if WHOLE else 6))):
            with self.subTest(k=k):
                self.assert_failure_is_told(k, ILLEGAL_ADDRESS)

    def test_nothing_waits_for_a_gpu_that_is_lost(self):
        """From the call that tells of it to the end of the process. What gives something back then returns the same error at
        once, as CUDA says of every later call."""
        result, calls = self.calls_of()
        self.assert_ok(result)
        last = len(calls) - 1 - calls[::-1].index("cudaGraphLaunch")
        for k in (calls.index("cudaMemcpyAsync"), calls.index("cudaGraphLaunch"), last):
            with self.subTest(k=k):
                result, calls_then = self.calls_of(KOLO_FAKE_CUDA_FAIL=f"{k + 1}:{ILLEGAL_ADDRESS}")
                self.assertEqual(result.code, 1)
                self.assertEqual(WAITING & set(calls_then[k + 1:]), set())


class Bugs(FakeGpuTest):
    """What the checker is for is found on the first run."""

    def assert_is_reported(self, bug, words):
        result = self.train("gpu", "--model", "mlp", "--steps", 2, KOLO_FAKE_CUDA_BREAK=bug)
        self.assertEqual(result.code, 70, result.err)
        self.assertIn(words, result.err)

    def test_a_device_that_is_not_made_current_is_reported(self):
        self.assert_is_reported("current", "this thread has made no device current")

    def test_a_wrong_transpose_flag_is_reported(self):
        self.assert_is_reported("transpose", "is not [")

    def test_a_stream_that_waits_for_no_other_gives_other_losses(self):
        """Labels and pixels that are not there yet."""
        right = self.losses("gpu", *MLP, *CALM)
        result = self.train("gpu", *MLP, *CALM, KOLO_FAKE_CUDA_BREAK="wait")
        wrong = {e["global_step"]: e["loss"] for e in result.events if e["event"] == "progress"}
        self.assertTrue(result.code != 0 or wrong[1] != right[1], result.err)


class Host(FakeGpuTest):
    """Nothing stops the host in a step, and no step waits for its batch, whatever is looked at between steps."""

    def test_a_training_with_all_that_watches_it_never_waits_in_a_step(self):
        folder = self.folder
        for model, more in (("mlp", ()), ("lenet", HOSTS_RATE)):
            args = ("--model", model, "--steps", 20, *more)
            watching = ("--checkpoint-dir", folder / model, "--save-steps", 7, "--tensorboard", folder / f"{model}-events",
                        "--histogram-steps", 5, "--check-drift", 4)
            with self.subTest(model=model):
                self.assert_ok(self.train("gpu", *args, *watching, KOLO_FAKE_CUDA_REFUSE="feeds,batches,waits", KOLO_GPU_SPIN_US=1000000))

    def test_batches_are_on_the_gpu_before_their_steps(self):
        """As many copies ahead as batches; the losses are the CPU's."""
        log = self.folder / "calls"
        args = ("--model", "mlp", "--steps", 20, *CALM)
        self.assert_close(self.losses("gpu", *args, KOLO_FAKE_CUDA_LOG=log), self.losses("cpu", *args))
        self.assertGreaterEqual(log.read_text().count("cudaMemcpyAsync ahead"), 2 * 20)

    def test_pixels_stay_bytes_until_they_are_on_the_gpu(self):
        trace = self.folder / "trace.json"
        for more, name in (((), "pixels"), (("--augment", "color"), "images")):  # colours are no whole numbers
            with self.subTest(name=name):
                self.assert_ok(self.train("gpu", "--model", "mlp", "--steps", 3, "--trace", trace, *more))
                names = [e["name"] for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "_Recv"]
                self.assertIn(f"{name}:0/_Recv/GPU:0", names)

    def test_a_folder_that_a_gpu_has_trained_predicts_as_others_do(self):
        args = ("--model", "mlp", "--steps", 5, *CALM, "--checkpoint-dir")
        inputs = {}
        for device in ("gpu", "cpu"):
            self.assert_ok(self.train(device, *args, self.folder / device))
            inputs[device] = (self.folder / device / "inference.pb").read_bytes()
        self.assertEqual(inputs["gpu"].count(b"Placeholder"), inputs["cpu"].count(b"Placeholder"))
        self.assertNotIn(b"pixels", inputs["gpu"])

    def test_a_batch_that_cannot_be_copied_ends_the_training(self):
        for code in (INVALID_VALUE, ILLEGAL_ADDRESS):
            with self.subTest(code=code):
                result = self.train("gpu", *MLP, KOLO_FAKE_CUDA_FAIL=f"cudaMemcpyAsync ahead:{code}")
                self.assertEqual(result.code, 1, result.err)
                self.assertEqual(len([line for line in result.err.splitlines() if line.startswith("kolo-train:")]), 1, result.err)
                if code == INVALID_VALUE:
                    self.assertRegex(result.err, "kolo-train: .*cudaMemcpyAsync")


class Order(FakeGpuTest):
    def test_the_log_of_streams_has_no_conflict_and_needs_each_wait(self):
        log = self.folder / "order"
        self.assert_ok(self.train("gpu", *HOSTS_RATE, "--model", "lenet", "--steps", 3, KOLO_CUDA_LOG=log))
        self.assert_ordered(log, fences=True)


if __name__ == "__main__":
    unittest.main()
