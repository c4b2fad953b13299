#!/usr/bin/env python3
"""A training that was ended, in whatever way, goes on where it was."""
import json
import os
import pathlib
import re
import signal
import time

import unittest

from programs import SLOWDOWN, ProgramTest, TrainedTest, finish, kolorun, rank_processes, run, start

SMALL = ("--model", "mlp", "--data", "generated", "--json", "--log-steps", 1)


def checkpoint_bytes(folder):
    return {p.name: p.read_bytes() for p in pathlib.Path(folder).iterdir() if p.name.startswith("model.ckpt-")}


class Resume(ProgramTest):
    def test_a_run_in_two_parts_ends_in_the_same_bits(self):
        # Of the 7,000 digits an epoch is over after 14 steps of 500.
        for model, ranks, batch, half in (("mlp", 1, 500, 10), ("mlp", 2, 64, 10), ("lenet", 2, 8, 10)):
            with self.subTest(model=model, ranks=ranks):
                whole, parts = self.folder / f"{model}{ranks}-whole", self.folder / f"{model}{ranks}-parts"
                train = ("kolo-train", "--model", model, "--data", "generated", "--batch-size", batch, "--threads", 1, "--json")
                self.assert_ok(run(*train, "--steps", 2 * half, "--checkpoint-dir", whole, ranks=ranks, deadline=360))
                self.assert_ok(run(*train, "--steps", half, "--checkpoint-dir", parts, ranks=ranks, deadline=360))
                self.assert_ok(run(*train, "--steps", 2 * half, "--checkpoint-dir", parts, ranks=ranks, deadline=360))
                a, b = checkpoint_bytes(whole), checkpoint_bytes(parts)
                for name in (f"model.ckpt-{2 * half}.safetensors", f"model.ckpt-{2 * half}.index.json"):
                    self.assertEqual(a[name], b[name], name)

    def test_inspect_prints_the_same_for_equal_states(self):
        outputs = []
        for name in ("a", "b"):
            self.assert_ok(run("kolo-train", *SMALL, "--steps", 3, "--threads", 1, "--checkpoint-dir", self.folder / name))
            outputs.append(self.assert_ok(run("kolo-inspect", "checkpoint", self.folder / name, "--json")).out)
        self.assertEqual(outputs[0], outputs[1])
        summary = json.loads(outputs[0])
        self.assertEqual(summary["global_step"], 3)
        self.assertEqual(set(summary["tensors"]["global_step"]), {"dtype", "shape", "crc32c"})

    def test_another_number_of_ranks_goes_on_with_the_same_samples(self):
        losses = []
        for second in (1, 2):
            folder = self.folder / str(second)
            train = ("kolo-train", *SMALL, "--optimizer", "sgd", "--threads", 1, "--checkpoint-dir", folder)
            self.assert_ok(run(*train, "--steps", 5, "--batch-size", 64, ranks=2))
            result = self.assert_ok(run(*train, "--steps", 10, "--batch-size", 128 // second, ranks=second))
            losses.append([e["loss"] for e in result.events if e["event"] == "progress"])
        for one, two in zip(*losses):
            self.assertAlmostEqual(one / two, 1, delta=1e-4)


class StopOnRequest(ProgramTest):
    def stop(self, ranks, number):
        folder = self.folder / f"{ranks} ranks, {number.name}"  # a new one: its checkpoint tells that the training runs
        process = start("kolo-train", *SMALL, "--steps", 10**7, "--batch-size", 32, "--checkpoint-dir", folder, ranks=ranks)
        pids = self.wait_for_ranks(process, ranks, folder)
        os.kill(pids[ranks - 1], number)
        return finish(process), folder

    def wait_for_ranks(self, process, ranks, folder):
        deadline = time.monotonic() + 60 * SLOWDOWN
        while time.monotonic() < deadline and process.poll() is None:
            pids = rank_processes(process) if ranks > 1 else {0: process.pid}
            if len(pids) == ranks and (folder / "checkpoint").exists():
                time.sleep(0.5)  # some steps into the training, wherever that is
                return pids
            time.sleep(0.05)
        self.fail("the training did not start: " + process.communicate()[1])

    def test_a_signal_to_one_rank_stops_all_after_the_same_step_saved(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would the program
        for ranks, number in ((1, signal.SIGTERM), (1, signal.SIGINT), (2, signal.SIGUSR1), (3, signal.SIGTERM)):
            with self.subTest(ranks=ranks, number=number):
                result, folder = self.stop(ranks, number)
                self.assert_ok(result)
                self.assertTrue(result.done["stopped_on_request"])
                self.assertIsNone(result.done["test_accuracy"])
                step = result.done["global_step"]
                self.assertGreater(step, 0)
                self.assertTrue((folder / f"model.ckpt-{step}.safetensors").exists())
                self.assertEqual(sorted(p.name for p in folder.iterdir() if p.name.startswith(".") or p.name.endswith(".tmp")), [])

    def test_a_person_is_told_at_which_step_it_stopped(self):
        folder = self.folder / "ck"
        process = start("kolo-train", *(word for word in SMALL if word != "--json"), "--steps", 10**7, "--checkpoint-dir", folder)
        self.wait_for_ranks(process, 1, folder)
        process.send_signal(signal.SIGTERM)
        result = finish(process)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"stopped on request: step \d+ of 10000000, saved, ")

    def test_sigterm_to_kolorun_stops_the_ranks_saved(self):
        folder = self.folder / "ck"
        process = start("kolo-train", *SMALL, "--steps", 10**7, "--checkpoint-dir", folder, launcher=kolorun(2))
        self.wait_for_ranks(process, 2, folder)
        process.send_signal(signal.SIGTERM)
        result = self.assert_ok(finish(process))
        self.assertTrue(result.done["stopped_on_request"])
        self.assertTrue((folder / f"model.ckpt-{result.done['global_step']}.safetensors").exists())

    def test_a_code_of_ones_own_says_that_more_is_to_do(self):
        for options in ((), ("--restarts", 1)):  # which starts no such job again
            with self.subTest(options=options):
                folder = self.folder / f"ck{len(options)}"  # a new one: its checkpoint tells that the training runs
                process = start("kolo-train", *SMALL, "--steps", 10**7, "--checkpoint-dir", folder, launcher=kolorun(2, *map(str, options)),
                                KOLO_STOPPED_EXIT_CODE=75)
                self.wait_for_ranks(process, 2, folder)
                process.send_signal(signal.SIGTERM)
                result = finish(process)
                self.assertEqual(result.code, 75, result.err)
                self.assertTrue(result.done["stopped_on_request"])
                for words in ("MPI_ABORT", "Primary job", " is gone", "restart 1"):
                    self.assertNotIn(words, result.err)
        done = start("kolo-train", *SMALL, "--steps", 3, launcher=kolorun(2), KOLO_STOPPED_EXIT_CODE=75)
        self.assert_ok(finish(done))


class DeadRank(ProgramTest):
    def test_kolorun_names_the_rank_its_host_and_the_last_step(self):
        folder = self.folder / "ck"
        process = start("kolo-train", *SMALL, "--steps", 10**7, "--save-steps", 20, "--checkpoint-dir", folder, launcher=kolorun(2))
        deadline = time.monotonic() + 60 * SLOWDOWN
        while len(list(folder.glob("model.ckpt-*.index.json"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        killed = time.monotonic()
        os.kill(rank_processes(process)[1], signal.SIGKILL)
        result = finish(process, deadline=30)
        self.assertLess(time.monotonic() - killed, 10)
        self.assertNotEqual(result.code, 0)
        gone = re.search(r"^rank 1 on \S+ is gone \(last step (\d+)\)$", result.err, re.MULTILINE)
        self.assertTrue(gone, result.err)
        self.assertGreaterEqual(int(gone.group(1)), 20)

    def test_the_job_ends_and_the_same_command_resumes(self):
        folder = self.folder / "ck"
        train = ("kolo-train", *SMALL, "--steps", 10**7, "--save-steps", 20, "--checkpoint-dir", folder)
        process = start(*train, ranks=3)
        deadline = time.monotonic() + 60 * SLOWDOWN
        while len(list(folder.glob("model.ckpt-*.index.json"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        killed = time.monotonic()
        os.kill(rank_processes(process)[2], signal.SIGKILL)
        result = finish(process, deadline=30)
        self.assertLess(time.monotonic() - killed, 10)
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err, r"rank 2\b")
        saved = max(int(re.search(r"ckpt-(\d+)\.", p.name).group(1)) for p in folder.glob("model.ckpt-*.index.json"))
        resumed = self.assert_ok(run("kolo-train", *SMALL, "--steps", saved + 5, "--checkpoint-dir", folder, ranks=3))
        steps = [e["global_step"] for e in resumed.events if e["event"] == "progress"]
        self.assertGreaterEqual(min(steps), saved - 20)
        self.assertEqual(resumed.done["global_step"], saved + 5)


class DamagedCheckpoint(TrainedTest):
    @classmethod
    def train_once(cls, folder):
        return run("kolo-train", *SMALL, "--steps", 6, "--save-steps", 3, "--checkpoint-dir", folder)

    def setUp(self):
        super().setUp()
        self.train = ("kolo-train", *SMALL, "--checkpoint-dir", self.folder)
        self.tensors = self.folder / "model.ckpt-6.safetensors"
        self.index = self.folder / "model.ckpt-6.index.json"

    def flip(self, path, at):
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.write_bytes(content)

    def expect_resume_from_3(self, file, ranks=1):
        result = self.assert_ok(run(*self.train, "--steps", 8, ranks=ranks))
        warnings = [line for line in result.err.splitlines() if "ignoring model.ckpt-6: " in line]
        self.assertEqual(len(warnings), 1, result.err)
        self.assertIn(file, warnings[0])
        self.assertEqual(result.events[0]["global_step"], 4)

    def test_a_missing_tensor_file_is_ignored(self):
        self.tensors.unlink()
        self.expect_resume_from_3("model.ckpt-6.safetensors")

    def test_a_missing_index_is_ignored(self):
        self.index.unlink()
        self.expect_resume_from_3("model.ckpt-6.index.json")

    def test_a_cut_file_is_ignored(self):
        os.truncate(self.tensors, self.tensors.stat().st_size - 1)
        self.expect_resume_from_3("model.ckpt-6.safetensors")

    def test_a_flipped_bit_of_the_header_is_found(self):
        self.flip(self.tensors, 20)
        self.expect_resume_from_3("model.ckpt-6.safetensors")

    def test_a_flipped_bit_of_the_data_is_found(self):
        self.flip(self.tensors, self.tensors.stat().st_size - 1000)
        self.expect_resume_from_3("model.ckpt-6.safetensors", ranks=2)  # which both tell in one line

    def test_a_flipped_bit_of_the_index_is_found(self):
        self.flip(self.index, 40)
        self.expect_resume_from_3("model.ckpt-6.index.json", ranks=2)

    def test_a_lost_state_file_is_rebuilt_from_the_folder(self):
        (self.folder / "checkpoint").write_bytes(b"\x00\xff")
        result = self.assert_ok(run(*self.train, "--steps", 8))
        self.assertEqual(result.events[0]["global_step"], 7)

    def test_an_untrained_one_is_not_used_in_its_place(self):
        ck = self.folder / "one"  # step 0 and the last, as with the usual --save-steps
        train = ("kolo-train", "--checkpoint-dir", ck)
        self.assert_ok(run(*train, "--model", "mlp", "--data", "generated", "--batch-size", 8, "--steps", 2))
        image = self.folder / "images-idx3-ubyte"
        image.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(784))
        asked = (("--evaluate",), ("--predict", image))
        for words in asked:
            self.assert_ok(run(*train, *words))
        os.truncate(ck / "model.ckpt-2.safetensors", 1000)
        for words in asked:
            self.assert_one_line(run(*train, *words), 1, "model.ckpt-2.safetensors", "step 0, the untrained network", "put back a copy of the file, or train again")

    def test_without_an_intact_one_it_does_not_start_from_zero(self):
        for file in self.folder.glob("model.ckpt-*.safetensors"):
            os.truncate(file, 100)
        result = run(*self.train, "--steps", 8, ranks=2)
        self.assert_one_line(result, 1, "intact")


if __name__ == "__main__":
    unittest.main()
