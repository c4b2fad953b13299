#!/usr/bin/env python3
"""Bad input gets one clear line and an exit code, never a crash, a hang or half a training."""
import gzip
import os
import resource
import shutil
import struct
import subprocess
import unittest

from programs import ProgramTest, command, environment, run

MLP = ("--model", "mlp", "--data", "generated")


class CommandLine(ProgramTest):
    def refuse(self, args, *words, ranks=1):
        with self.subTest(args=args):
            self.assert_one_line(run("kolo-train", *args, ranks=ranks), 2, *words)

    def test_names_the_nearest_model_and_optimizer(self):
        self.refuse(("--model", "lenett", "--data", "generated"), 'there is no model "lenett"', 'did you mean "lenet"?')
        self.refuse((*MLP, "--optimizer", "adamm"), 'there is no optimizer "adamm"', 'did you mean "adam"?')

    def test_refuses_numbers_that_are_none(self):
        for option in ("--steps", "--epochs", "--batch-size", "--save-steps", "--threads", "--log-steps", "--backward-passes", "--validate-every"):
            extra = ("--checkpoint-dir", self.folder) if option == "--save-steps" else ()
            for value in ("0", "-3", "nan", "12x", "", "1e3", "99999999999999999999"):
                self.refuse((*MLP, *extra, f"{option}={value}"), option, value)
        for value in ("0", "-0.1", "nan", "inf", "0.1x"):
            self.refuse((*MLP, f"--learning-rate={value}"), "--learning-rate", value)
            self.refuse((*MLP, f"--clip-norm={value}"), "--clip-norm", value)
        for value in ("-0.1", "1", "nan", "x"):
            self.refuse((*MLP, "--optimizer=momentum", f"--momentum={value}"), "--momentum", value)
            self.refuse((*MLP, f"--weight-decay={value}"), "--weight-decay", value)
        for value in ("fp8", "powersgd:0", "powersgd:x", "topk:0", "topk:2", "topk:"):
            self.refuse((*MLP, f"--compression={value}"), "--compression", value)
        self.refuse((*MLP, "--schedule=cos"), "--schedule", "cosine")

    def test_refuses_what_only_a_training_has_where_nothing_is_trained(self):
        for option in (("--trace", "t.json"), ("--steps", 3), ("--keep", 1), ("--sharded",), ("--keep-going",)):
            self.refuse((*MLP, "--evaluate", "--checkpoint-dir", self.folder, *option), option[0], "--evaluate trains nothing")

    def test_refuses_names_that_are_empty(self):
        for option in ("--init-from", "--init-names", "--checkpoint-dir", "--log-dir", "--trace", "--data"):
            self.refuse(("--model", "mlp", option, ""), f'{option} ""')

    def test_refuses_a_momentum_that_the_optimizer_does_not_take(self):
        self.refuse((*MLP, "--momentum", 0.5), "--momentum is of momentum, nesterov and lars", "--optimizer is adam")

    def test_refuses_steps_together_with_epochs(self):
        self.refuse((*MLP, "--steps", 5, "--epochs", 1), "--steps and --epochs")

    def test_names_the_nearest_option(self):
        self.refuse((*MLP, "--learning-rat", 1), "--learning-rat", 'did you mean "--learning-rate"?')

    def test_asks_for_what_is_missing(self):
        self.refuse(("--data", "generated"), "--model is missing")
        self.refuse((*MLP, "--evaluate"), "--evaluate needs --checkpoint-dir")
        self.refuse((*MLP, "--save-steps", 5), "--save-steps needs --checkpoint-dir")
        self.refuse((*MLP, "--keep", 2), "--keep needs --checkpoint-dir")

    def test_rank_0_alone_says_what_all_ranks_found(self):
        self.refuse(("--model", "lenett", "--data", "generated"), "lenett", ranks=3)


class Data(ProgramTest):
    def setUp(self):
        super().setUp()
        self.images(100)
        self.labels([i % 10 for i in range(100)])

    def images(self, announced, held=None, magic=0x803):
        held = announced if held is None else held
        (self.folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">4I", magic, announced, 28, 28) + bytes(784 * held))

    def labels(self, values):
        (self.folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, len(values)) + bytes(values))

    def refuse(self, *words, args=(), ranks=1):
        self.assert_one_line(run("kolo-train", "--model", "mlp", "--data", self.folder, "--steps", 1, *args, ranks=ranks), 1, *words)

    def test_missing_files(self):
        (self.folder / "train-labels-idx1-ubyte").unlink()
        self.refuse("train-labels-idx1-ubyte")

    def test_missing_folder(self):
        shutil.rmtree(self.folder)
        self.refuse(str(self.folder), ranks=2)

    def test_no_data_anywhere_names_both_places(self):
        result = run("kolo-train", "--model", "mlp", "--steps", 1, cwd=self.folder)
        self.assert_one_line(result, 1, "KOLO_DATA_DIR", "data/mnist")

    def test_data_folder_of_the_environment_that_is_none(self):
        result = run("kolo-train", "--model", "mlp", "--steps", 1, KOLO_DATA_DIR="/nowhere")
        self.assert_one_line(result, 1, "KOLO_DATA_DIR", "/nowhere")

    def test_wrong_magic(self):
        self.images(100, magic=0x1234)
        self.refuse("train-images-idx3-ubyte", "magic")

    def test_truncated_file(self):
        self.images(100, held=99)
        self.refuse("train-images-idx3-ubyte")

    def test_truncated_gzip_file(self):
        path = self.folder / "train-images-idx3-ubyte"
        packed = gzip.compress(os.urandom(16) + path.read_bytes())
        path.unlink()
        (self.folder / "train-images-idx3-ubyte.gz").write_bytes(packed[:-20])
        self.refuse("train-images-idx3-ubyte.gz")

    def test_more_items_announced_than_memory_could_hold(self):
        self.images(2**32 - 1, held=1)
        self.refuse("train-images-idx3-ubyte")

    def test_counts_that_differ(self):
        self.labels([1] * 99)
        self.refuse("100", "99")

    def test_a_label_above_nine_is_named_before_the_first_step(self):
        self.labels([3] * 42 + [11] + [3] * 57)
        self.refuse("train-labels-idx1-ubyte", "11")

    def test_batch_larger_than_the_shard(self):
        self.refuse("80", args=("--batch-size", 80), ranks=2)

    def test_more_ranks_than_samples(self):
        self.images(2)
        self.labels([1, 2])
        self.refuse("3 ranks", args=("--batch-size", 1), ranks=3)


class Checkpoints(ProgramTest):
    def refuse(self, folder, *words, model="mlp", ranks=1):
        result = run("kolo-train", "--model", model, "--data", "generated", "--steps", 2, "--checkpoint-dir", folder, ranks=ranks)
        self.assert_one_line(result, 1, *words)

    def test_a_path_that_is_a_file(self):
        file = self.folder / "file"
        file.write_text("")
        self.refuse(file, str(file), ranks=2)

    def test_a_folder_that_cannot_be_written(self):
        # Root may write everywhere; nobody may write to /proc.
        self.refuse("/proc/kolo-checkpoints", "/proc/kolo-checkpoints", ranks=2)

    def test_the_checkpoint_of_another_model(self):
        self.assertEqual(run("kolo-train", "--model", "lenet", "--data", "generated", "--steps", 1, "--checkpoint-dir", self.folder).code, 0)
        (self.folder / "config.json").unlink()  # with it the names of the models are compared
        self.refuse(self.folder, "fc", ranks=2)

    def test_inspect_refuses_what_is_no_checkpoint(self):
        self.assert_one_line(run("kolo-inspect", "checkpoint", self.folder / "none"), 1, "none")


class Device(ProgramTest):
    def test_a_gpu_that_is_not_there(self):
        self.assert_one_line(run("kolo-train", *MLP, "--steps", 1, "--device", "gpu"), 1, "--device gpu", "no GPU")

    def test_a_precision_that_the_cpu_has_no_instructions_for(self):
        result = run("kolo-train", *MLP, "--steps", 1, "--precision", "bf16", ONEDNN_MAX_CPU_ISA="AVX2")
        self.assert_one_line(result, 1, "AVX512_BF16", "f32")
        self.assert_one_line(run("kolo-train", *MLP, "--precision", "half"), 2, '--precision "half"', "automatic, f32, tf32 or bf16")


class Output(ProgramTest):
    def test_a_log_that_cannot_be_written_is_told_and_the_training_goes_on(self):
        (self.folder / "metrics.jsonl").symlink_to("/dev/full")
        result = self.assert_ok(run("kolo-train", *MLP, "--steps", 3, "--log-steps", 1, "--log-dir", self.folder))
        self.assertEqual(result.err.count("metrics.jsonl cannot be written any more"), 1, result.err)

    def test_a_limit_of_file_sizes_ends_no_training(self):
        words = command("kolo-train", *MLP, "--steps", 60, "--log-steps", 1, "--log-dir", self.folder)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment(), preexec_fn=limit)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("metrics.jsonl cannot be written any more", done.stderr)

    def test_a_full_disk_behind_stdout_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(command("kolo-train", *MLP, "--steps", 2), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                                  env=environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("not all of the output could be written", done.stderr)


if __name__ == "__main__":
    unittest.main()
