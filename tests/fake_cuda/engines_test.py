#!/usr/bin/env python3
"""Which of cuDNN's engines computes, over a cuDNN whose engines are known: 5 needs 200 MiB, 9 is wrong, 12 varies, 2 is for
TF32; 1, 20, 30 and 31 serve, in this order."""
import json
import unittest

from fake_gpu import CALM, FAKE, GPU, FakeGpuTest
from programs import run

DNN = {**GPU, "KOLO_CUDA_LIBRARIES": FAKE / "cudnn"}  # and no cuBLASLt, whose algorithms would be in the files, too
# Three runs.
TIMED = {"KOLO_AUTOTUNE": 1, "KOLO_FAKE_CUDNN_MS": "20:1.5"}


class Engines(FakeGpuTest):
    def step(self, *args, precision="f32", steps=2, **env):
        """Of LeNet with one image: two convolutions, the results of both, and what their gradients are of."""
        done = run("kolo-bench", "train", "--models", "lenet", "--batch", 1, "--steps", steps, "--json", "--device", "gpu", "--threads", 1,
                   "--precision", precision, *args, **{**DNN, "KOLO_LOG_LEVEL": "debug", **env})
        self.assertEqual(done.code, 0, done.err[-3000:])
        return done.err

    def kept(self, path):
        return json.loads(path.read_text())["engines"]

    def engines(self, path):
        return {entry["engine"] for entry in self.kept(path)}

    def test_the_first_that_serves_is_kept_and_asked_nothing_the_next_time(self):
        file = self.folder / "engines"
        first = self.step(KOLO_ENGINES=file)
        self.assertIn("cuDNN's engine 9 is off by 1.0e-02 of the result", first)
        self.assertIn("cuDNN's engine 12 gives other bits in another run", first)
        self.assertIn("cuDNN's engine 1 serves", first)
        self.assertEqual(self.engines(file), {1})
        self.assertEqual(len(self.kept(file)), 5)  # nobody asks for the gradient of the pixels
        again = self.step(KOLO_ENGINES=file)
        self.assertNotIn("cuDNN's engine", again)

    def test_the_fastest_is_kept_where_that_is_asked_for_and_stays_when_times_change(self):
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file, **TIMED)
        self.assertEqual(self.engines(file), {20})
        self.assertEqual({entry["milliseconds"] for entry in self.kept(file)}, {0.5})
        before = file.read_text()
        again = self.step(KOLO_ENGINES=file, KOLO_AUTOTUNE=1, KOLO_FAKE_CUDNN_MS="30:0.1")
        self.assertNotIn("cuDNN's engine", again)
        self.assertNotIn("cuDNN's engine", self.step(KOLO_ENGINES=file))  # which asks for no times
        self.assertEqual(file.read_text(), before)

    def test_the_first_that_served_is_timed_where_that_is_asked_for(self):
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file)
        self.step(KOLO_ENGINES=file, **TIMED)
        self.assertEqual(self.engines(file), {20})

    def test_a_call_that_fails_while_engines_are_timed_is_one_line_or_another_engine_serves(self):
        def run_with(**env):
            return run("kolo-bench", "train", "--models", "lenet", "--batch", 1, "--steps", 2, "--json", "--device", "gpu", "--threads", 1,
                       **{**DNN, **TIMED, **env})

        log = self.folder / "calls"
        self.assertEqual(run_with(KOLO_FAKE_CUDA_LOG=log).code, 0)
        calls, places = log.read_text().split(), {}
        for k, name in enumerate(calls, 1):
            if name.startswith("cudnn") or name == "cudaEventElapsedTime":
                places.setdefault(name, []).append(k)
        self.assertTrue({"cudnnBackendExecute", "cudaEventElapsedTime"} <= set(places))
        for name, numbers in places.items():
            for k in {numbers[0], numbers[len(numbers) // 2]}:
                with self.subTest(name=name, k=k):
                    done = run_with(KOLO_FAKE_CUDA_FAIL=k)
                    self.assertIn(done.code, (0, 1), done.err[-2000:])
                    self.assertNotIn("fake_cuda:", done.err)
                    own = [line for line in done.err.splitlines() if line.startswith("kolo-bench:")]
                    self.assertEqual(len(own), done.code, done.err[-2000:])

    def test_a_damaged_file_is_told_and_written_anew(self):
        file = self.folder / "engines"
        file.write_text('{"kolo_engines": 1, "engines": [{"machine": 7}]}')
        told = [line for line in self.step(KOLO_ENGINES=file).splitlines() if "engines are chosen anew" in line]
        self.assertEqual(len(told), 1, told)
        self.assertEqual(self.engines(file), {1})

    def test_a_file_of_another_cudnn_is_told_and_stays_for_that(self):
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file, **TIMED)
        told = [line for line in self.step(KOLO_ENGINES=file, KOLO_FAKE_CUDNN_VERSION="old").splitlines() if "chosen anew" in line]
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], r"holds engines for Fake, driver .*cuDNN 9\.19\.0; this is Fake, driver .*cuDNN 9\.14\.0, for which")
        self.assertEqual(self.engines(file), {1, 20})
        self.assertNotIn("chosen anew", self.step(KOLO_ENGINES=file))

    def test_an_engine_that_is_not_where_it_was_is_told_and_chosen_anew(self):
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file)
        entries = self.kept(file)
        entries[0]["place"] = 77
        entries[1]["engine"] = 4711
        file.write_text(json.dumps({"kolo_engines": 1, "engines": entries}))
        told = [line for line in self.step(KOLO_ENGINES=file).splitlines() if "does not serve here any more" in line]
        self.assertEqual(len(told), 2, told)
        self.assertEqual(self.engines(file), {1})

    def test_one_that_needs_more_workspace_than_is_allowed_now_is_chosen_anew(self):
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file, **TIMED)
        self.assertIn("engine 20 of", self.step(KOLO_ENGINES=file, KOLO_WORKSPACE_MIB=0))

    def test_a_tenth_of_the_gpu_is_an_engines_workspace_unless_more_is_allowed(self):
        """This one has a GiB."""
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file, KOLO_WORKSPACE_MIB=400)
        self.assertEqual(self.engines(file), {5})
        self.assertIn("engine 5 of", self.step(KOLO_ENGINES=file))
        self.assertEqual(self.engines(file), {1})

    def test_no_more_than_four_are_timed(self):
        for workspace, engine in (({}, 31), ({"KOLO_WORKSPACE_MIB": 400}, 20)):
            file = self.folder / str(engine)
            self.step(KOLO_ENGINES=file, KOLO_AUTOTUNE=1, KOLO_FAKE_CUDNN_MS="31:0.3,20:0.6", **workspace)
            self.assertEqual(self.engines(file), {engine})

    def test_a_file_that_cannot_be_written_is_told_once_and_the_step_goes_on(self):
        (self.folder / "file").write_text("")
        told = [line for line in self.step(KOLO_ENGINES=self.folder / "file" / "engines").splitlines() if "are not kept" in line]
        self.assertEqual(len(told), 1, told)

    def test_one_line_says_what_convolutions_multiply_in(self):
        lines = {"automatic": "convolutions on GPU 0 multiply in TF32 (precision f32 for exact ones)", "f32": None, "tf32": None}
        for precision, line in lines.items():
            with self.subTest(precision=precision):
                said = self.step(precision=precision)
                self.assertEqual(said.count("multiply in"), 0 if line is None else 1)
                self.assertEqual("cuDNN's engine 2 serves" in said, precision != "f32")
                if line is not None:
                    self.assertIn(line, said)
        said = self.step(precision="automatic", NVIDIA_TF32_OVERRIDE=0)
        self.assertIn("convolutions on GPU 0 multiply in f32 (NVIDIA_TF32_OVERRIDE=0)", said)
        self.assertNotIn("cuDNN's engine 2 serves", said)

    def test_the_handles_stream_is_set_where_it_changes_alone(self):
        sets = []
        for steps in (2, 12):
            log = self.folder / "calls"
            self.step(steps=steps, KOLO_CUDA_GRAPHS=0, KOLO_FAKE_CUDA_LOG=log)
            sets.append(log.read_text().split().count("cudnnSetStream"))
        self.assertEqual(sets[0], sets[1])

    def test_inspect_lists_a_file(self):
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file, **TIMED)
        listed = run("kolo-inspect", "gpu", "--engines", file)
        self.assertEqual(listed.code, 0, listed.err)
        lines = listed.out.splitlines()
        self.assertRegex(lines[0], r"^Fake, driver .*, cuDNN 9\.19\.0$")
        self.assertEqual(len(lines), 6)
        self.assertRegex(lines[1], r"^  engine 20   0\.5000 ms +results, images \[1,1,28,28\]")
        file.write_text("no")
        refused = run("kolo-inspect", "gpu", "--engines", file)
        self.assertEqual((refused.code, len(refused.err.splitlines())), (1, 1))
        self.assertIn("is no file of engines, or it is damaged", refused.err)


class Products(FakeGpuTest):
    """cuBLASLt offers three algorithms for each product, the first of which is taken unless time is to choose."""
    def step(self, precision="f32", **env):
        done = run("kolo-bench", "train", "--models", "mlp", "--batch", 4, "--steps", 2, "--json", "--device", "gpu", "--threads", 1,
                   "--precision", precision, **{**GPU, "KOLO_LOG_LEVEL": "debug", **env})
        self.assertEqual(done.code, 0, done.err[-3000:])
        return done

    def kept(self, file):
        return [(entry["question"], entry["engine"], entry["milliseconds"]) for entry in json.loads(file.read_text())["engines"]]

    def test_the_fastest_algorithm_is_kept_and_stays_when_times_change(self):
        file = self.folder / "engines"
        first = self.step(KOLO_ENGINES=file, KOLO_AUTOTUNE=1, KOLO_FAKE_CUBLAS_MS="2:1.5")
        kept = self.kept(file)
        self.assertIn(("product, 1 times [4,784] by [784,1024]", 2, 0.5), kept)
        self.assertEqual({engine for _, engine, _ in kept}, {2})
        self.assertEqual(first.err.count("cuBLASLt's algorithm 2 takes 0.5000 ms"), len(kept))  # once a process and product
        before = file.read_text()
        for env in ({"KOLO_AUTOTUNE": 1, "KOLO_FAKE_CUBLAS_MS": "1:0.1"}, {}):
            again = self.step(KOLO_ENGINES=file, **env)
            self.assertNotIn("cuBLASLt's algorithm", again.err)
            self.assertNotIn("chosen anew", again.err)
            self.assertEqual(json.loads(again.out)["loss"], json.loads(first.out)["loss"])
        self.assertEqual(file.read_text(), before)
        listed = run("kolo-inspect", "gpu", "--engines", file)
        self.assertRegex(listed.out, r"(?s)^Fake, driver .*, cuBLASLt 1\d\.\d+\.\d+\n.*engine 2 +0\.5000 ms +product, 1 times \[4,784\]")

    def test_nothing_is_measured_unless_it_is_asked_for(self):
        file = self.folder / "engines"
        self.assertNotIn("cuBLASLt's algorithm", self.step(KOLO_ENGINES=file).err)
        self.assertFalse(file.exists())

    def test_products_in_tf32_are_other_questions(self):
        file = self.folder / "engines"
        self.step(KOLO_ENGINES=file, KOLO_AUTOTUNE=1)
        self.step("tf32", KOLO_ENGINES=file, KOLO_AUTOTUNE=1)
        questions = [question for question, _, _ in self.kept(file)]
        self.assertEqual(sum(question.endswith(", TF32") for question in questions), len(questions) // 2)


class Checkpoints(FakeGpuTest):
    """kolo-train keeps them with its checkpoints."""

    def train(self, device, *args, **options):
        return super().train(device, "--model", "lenet", "--precision", "f32", *CALM, *args, **{**DNN, "KOLO_AUTOTUNE": 1, **options})

    def test_a_resumed_run_has_the_losses_of_an_undisturbed_one(self):
        whole = self.losses("gpu", "--steps", 4, "--checkpoint-dir", self.folder / "whole", KOLO_FAKE_CUDNN_MS="20:1.5")
        parts = {}
        for steps, times in ((2, "20:1.5"), (4, "1:0.1")):
            parts.update(self.losses("gpu", "--steps", steps, "--checkpoint-dir", self.folder / "parts", KOLO_FAKE_CUDNN_MS=times))
        self.assertEqual(parts, whole)
        kept = json.loads((self.folder / "parts" / "engines.json").read_text())["engines"]
        self.assertEqual({entry["engine"] for entry in kept}, {20})

    def test_each_rank_has_its_own_file(self):
        self.losses("gpu", "--steps", 2, "--checkpoint-dir", self.folder / "ck", ranks=2)
        self.assertEqual(sorted(path.name for path in (self.folder / "ck").glob("engines*")), ["engines.json.0", "engines.json.1"])


if __name__ == "__main__":
    unittest.main()
