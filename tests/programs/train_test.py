#!/usr/bin/env python3
"""kolo-train trains, on any number of ranks, and tells what it did."""
import json
import os
import re
import unittest

from programs import SLOWDOWN, ProgramTest, finish, mnist, mpirun, run, start

# Sizes that train in a moment. Generated digits, so that these tests run everywhere.
SMALL = ("--model", "mlp", "--data", "generated", "--json")
EACH_STEP = (*SMALL, "--log-steps", 1)


class Train(ProgramTest):
    def test_prints_one_json_object_a_line_and_done_at_the_end(self):
        result = self.assert_ok(run("kolo-train", *EACH_STEP, "--steps", 30, "--checkpoint-dir", self.folder, ranks=2))
        done = result.done
        self.assertEqual(done["event"], "done")
        self.assertEqual(done["global_step"], 30)
        self.assertEqual(done["ranks"], 2)
        self.assertGreater(done["samples_per_s"], 0)
        self.assertGreater(done["test_accuracy"], 0.5)
        self.assertEqual(done["data"], "generated digits")
        progress = [e for e in result.events if e["event"] == "progress"]
        self.assertEqual([e["global_step"] for e in progress], list(range(1, 31)))
        self.assertLess(progress[-1]["loss"], progress[0]["loss"])
        self.assertEqual(done["loss"], progress[-1]["loss"])

    def test_prints_plain_lines_that_name_the_data_where_there_is_no_terminal(self):
        for ranks in (1, 2):
            result = self.assert_ok(run("kolo-train", "--model", "mlp", "--data", "generated", "--steps", 3, ranks=ranks))
            lines = result.out.splitlines()
            self.assertEqual(len(lines), 2, "the first step, and the end")
            for line in lines:
                self.assertIn("generated digits", line)
                self.assertNotIn("\033", line)
            self.assertTrue(lines[-1].startswith("done: step 3, loss "), lines[-1])

    def threads_of(self, launcher, *options):
        """What a training says of its threads, without OMP_NUM_THREADS."""
        process = start("kolo-train", "--model", "mlp", "--data", "generated", "--steps", 1, *options,
                        launcher=["env", "-u", "OMP_NUM_THREADS", *launcher])
        return re.search(r"threads: (.*)", self.assert_ok(finish(process)).err)[1]

    @unittest.skipIf(SLOWDOWN > 1, "sanitizers do not know the threads of OpenMP")
    def test_says_how_many_threads_compute_and_why(self):
        cores = len(os.sched_getaffinity(0))
        alone = self.threads_of([])
        self.assertRegex(alone, r"^\d+ a rank \(\d+ cores?\)$")
        self.assertLessEqual(int(alone.split()[0]), cores)
        self.assertEqual(self.threads_of(["taskset", "-c", str(min(os.sched_getaffinity(0)))]), "1 a rank (1 core)")
        self.assertEqual(self.threads_of([], "--threads", 3), "3 a rank (--threads)")
        result = self.assert_ok(run("kolo-train", "--model", "mlp", "--data", "generated", "--steps", 1, OMP_NUM_THREADS=2))
        self.assertIn("threads: 2 a rank (OMP_NUM_THREADS)", result.err)

    @unittest.skipIf(SLOWDOWN > 1, "sanitizers do not know the threads of OpenMP")
    def test_ranks_share_the_cores_that_they_may_run_on(self):
        self.assertRegex(self.threads_of(mpirun(4)), r"^\d+ a rank \(\d+ cores? for 4 ranks\)$")
        if len(os.sched_getaffinity(0)) > 1:
            bound = [word if word != "none" else "core" for word in mpirun(2)]
            self.assertEqual(self.threads_of(bound), "1 a rank (1 core)")

    def test_one_two_and_four_ranks_see_the_same_samples(self):
        losses = {}
        for ranks, batch in ((1, 128), (2, 64), (4, 32)):
            result = self.assert_ok(run("kolo-train", *EACH_STEP, "--optimizer", "sgd", "--learning-rate", 0.05, "--steps", 12,
                                        "--batch-size", batch, "--threads", 1, ranks=ranks))
            losses[ranks] = [e["loss"] for e in result.events if e["event"] == "progress"]
            self.assertEqual(len(losses[ranks]), 12)
        for ranks in (2, 4):
            for one, several in zip(losses[1], losses[ranks]):
                self.assertAlmostEqual(several / one, 1, delta=1e-4)

    def test_virtual_gpus_give_the_losses_of_the_cpu(self):
        losses = []
        for device, environment in (("cpu", {}), ("gpu", {"KOLO_VIRTUAL_GPUS": "2x512MiB"})):
            result = self.assert_ok(run("kolo-train", *EACH_STEP, "--steps", 5, "--threads", 1, "--device", device, ranks=2,
                                        **environment))
            losses.append([e["loss"] for e in result.events if e["event"] == "progress"])
        self.assertEqual(losses[0], losses[1])

    def test_epochs_count_whole_passes_from_step_zero(self):
        result = self.assert_ok(run("kolo-train", *SMALL, "--epochs", 1, "--batch-size", 350, ranks=2))
        self.assertEqual(result.done["global_step"], 10, "7,000 digits in batches of 2 x 350")

    def test_with_nothing_missing_it_is_done_at_once(self):
        self.assert_ok(run("kolo-train", *SMALL, "--steps", 5, "--checkpoint-dir", self.folder))
        done = self.assert_ok(run("kolo-train", *SMALL, "--steps", 5, "--checkpoint-dir", self.folder)).done
        self.assertEqual((done["event"], done["global_step"], done["loss"]), ("done", 5, None))

    def test_evaluate_counts_every_test_sample_once_on_any_number_of_ranks(self):
        trained = self.assert_ok(run("kolo-train", *SMALL, "--steps", 40, "--checkpoint-dir", self.folder)).done
        for ranks in (1, 3):
            before = sorted(p.name for p in self.folder.iterdir())
            done = self.assert_ok(run("kolo-train", *SMALL, "--evaluate", "--checkpoint-dir", self.folder, ranks=ranks)).done
            self.assertEqual(done["test_accuracy"], trained["test_accuracy"])
            self.assertEqual(done["global_step"], 40)
            self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before, "evaluation writes nothing")

    def test_evaluate_without_a_checkpoint_fails(self):
        self.assert_one_line(run("kolo-train", *SMALL, "--evaluate", "--checkpoint-dir", self.folder / "none"), 1, "checkpoint", "none")

    def test_writes_the_same_lines_to_the_log_folder(self):
        result = self.assert_ok(run("kolo-train", *EACH_STEP, "--steps", 4, "--log-dir", self.folder / "logs", ranks=2))
        lines = (self.folder / "logs" / "metrics.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(line) for line in lines[1:]], result.events)

    def test_the_log_begins_with_what_the_run_is(self):
        more = ("--optimizer", "sgd", "--batch-size", 20, "--backward-passes", 2, "--log-dir", self.folder / "logs", "--checkpoint-dir", self.folder)
        for steps, ranks in ((4, 2), (6, 1)):
            self.assert_ok(run("kolo-train", *EACH_STEP, *more, "--steps", steps, ranks=ranks))
        rows = [json.loads(line) for line in (self.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
        first, second = (row for row in rows if row["event"] == "run")
        self.assertIs(rows[0], first)
        wanted = {"global_step": 0, "optimizer": "sgd", "learning_rate": 0.1, "batch_size": 20, "backward_passes": 2, "global_batch": 80,
                  "last_step": 4, "ranks": 2, "hosts": 1, "seed": 1, "precision": "automatic"}
        self.assertEqual({name: first[name] for name in wanted}, wanted)
        self.assertEqual(first["model"]["name"], "mlp")
        self.assertEqual(set(first["kolo"]), {"version", "commit"})
        self.assertIn("kolo-train --model mlp", first["command"])
        self.assertIn("--backward-passes 2", first["command"])
        self.assertEqual((second["global_step"], second["ranks"], second["global_batch"]), (4, 1, 40))
        self.assertNotEqual(first["run"], second["run"])
        config = json.loads((self.folder / "config.json").read_text())
        self.assertEqual(config["command"], second["command"])
        self.assertEqual(list(config), ["kolo", "command", "model", "data", "loss", "preprocessing", "precision", "optimizer", "learning_rate",
                                        "batch_size", "global_batch", "seed", "switches"])

    def test_the_log_says_that_a_training_has_diverged(self):
        for ranks in (1, 2):
            logs = self.folder / str(ranks)
            result = run("kolo-train", *EACH_STEP, "--optimizer", "sgd", "--learning-rate", 1e30, "--steps", 50, "--log-dir", logs, ranks=ranks)
            self.assertEqual(result.code, 1)
            rows = [json.loads(line) for line in (logs / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual([row["event"] for row in rows[:2]], ["run", "progress"])
            self.assertEqual((rows[-1]["event"], rows[-1]["loss"]), ("diverged", None))
            self.assertIn(f"in step {rows[-1]['global_step']}, which was not applied", result.err)

    def test_each_optimizer_lowers_the_loss_at_its_own_rate(self):
        for optimizer in ("adadelta", "adagrad", "adam", "adamw", "ftrl", "lamb", "lars", "lion", "momentum", "nesterov", "rmsprop", "sgd"):
            length = ("--steps", 100) if optimizer == "rmsprop" else ("--batch-size", 32, "--steps", 40)  # that one rises first
            result = self.assert_ok(run("kolo-train", *EACH_STEP, "--optimizer", optimizer, *length))
            progress = [e["loss"] for e in result.events if e["event"] == "progress"]
            self.assertLess(sum(progress[-5:]) / 5, 0.8 * progress[0], optimizer)

    def test_help_and_version_go_to_stdout(self):
        self.assertIn("--learning-rate", self.assert_ok(run("kolo-train", "--help")).out)
        self.assertEqual(self.assert_ok(run("kolo-train", "--version")).out, "kolo-train 0.1.0\n")


class Trace(ProgramTest):
    def test_the_first_bucket_is_reduced_while_the_backward_pass_goes_on(self):
        trace = self.folder / "trace.json"
        self.assert_ok(run("kolo-train", "--model", "lenet", "--data", "generated", "--steps", 4, "--trace", trace, ranks=2))
        events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({e["pid"] for e in events}, {0})
        reductions = sorted((e for e in events if e["cat"] == "reduce"), key=lambda e: e["ts"])
        self.assertGreaterEqual(len(reductions), 2)
        backward_end = max(e["ts"] + e["dur"] for e in events if "_grad/" in e["name"] and e["cat"] != "reduce")
        self.assertLess(reductions[0]["ts"], backward_end)

    def test_trains_on_cifar10_and_says_what_it_found(self):
        for name, images in (("data_batch_1", 24), ("data_batch_2", 8), ("test_batch", 5)):
            (self.folder / f"{name}.bin").write_bytes(b"".join(bytes([i % 10]) + bytes([i]) * 3072 for i in range(images)))
        arguments = ("kolo-train", "--model", "resnet20", "--data", self.folder, "--batch-size", 8, "--json", "--threads", 1)
        result = self.assert_ok(run(*arguments, "--steps", 2, "--augment", "--checkpoint-dir", self.folder / "ck", ranks=2))
        self.assertEqual(result.done["data"], "CIFAR-10")
        self.assertIn("data: CIFAR-10, 32 images of 3 channels, 32 x 32, 10 classes (airplane: 4, automobile: 4,", result.err)
        self.assertIn(", and 5 for testing", result.err)
        again = self.assert_ok(run(*arguments, "--evaluate", "--checkpoint-dir", self.folder / "ck"))
        self.assertEqual(again.done["test_accuracy"], result.done["test_accuracy"])
        self.assert_one_line(run("kolo-train", "--model", "lenet", *arguments[3:], "--steps", 1), 1, "--model lenet", "[1,28,28]", "[3,32,32]", "resnet20")

    def test_profile_names_ops_layers_and_what_is_furthest_from_its_bound(self):
        result = self.assert_ok(run("kolo-train", *SMALL, "--steps", 6, "--profile", 3, "--threads", 1))
        profile, = (e for e in result.events if e["event"] == "profile")
        self.assertEqual((profile["steps"], profile["global_step"]), (3, 5), "from the third step on")
        self.assertIn("fc2", [row["name"] for row in profile["layers"]])
        products, = (row for row in profile["ops"] if row["name"] == "MatMul")
        self.assertGreater(products["GFLOPs"], 0)
        self.assertLess(sum(row["share"] for row in profile["ops"]), 1.2)
        self.assertEqual(len(profile["furthest"]), 3)

    def test_profile_of_fewer_steps_is_told_at_the_end(self):
        result = self.assert_ok(run("kolo-train", "--model", "mlp", "--data", "generated", "--steps", 4, "--profile", 50, ranks=2))
        self.assertIn("(median of 2)", result.out)
        self.assertIn("by layer", result.out)

    def test_traces_the_last_step_where_there_are_fewer_than_three(self):
        trace = self.folder / "trace.json"
        self.assert_ok(run("kolo-train", *SMALL, "--steps", 1, "--trace", trace))
        self.assertTrue(json.loads(trace.read_text())["traceEvents"])


@unittest.skipIf(mnist() is None, "no genuine MNIST found (KOLO_DATA_DIR, ../shared/data)")
class Mnist(ProgramTest):
    @unittest.skipIf(SLOWDOWN > 1, "ten epochs: not with sanitizers")
    def test_lenet_on_two_ranks_reads_more_than_97_percent_of_the_test_digits(self):
        result = self.assert_ok(run("kolo-train", "--model", "lenet", "--data", mnist(), "--epochs", 10, "--json", ranks=2, deadline=400))
        self.assertGreaterEqual(result.done["test_accuracy"], 0.970)

    @unittest.skipIf(SLOWDOWN > 1, "ten epochs: not with sanitizers")
    def test_mlp_with_adam_reads_more_than_94_percent(self):
        result = self.assert_ok(run("kolo-train", "--model", "mlp", "--data", mnist(), "--epochs", 10, "--json", ranks=2, deadline=200))
        self.assertGreaterEqual(result.done["test_accuracy"], 0.945)

    def test_finds_the_data_of_the_environment(self):
        result = self.assert_ok(run("kolo-train", "--model", "mlp", "--steps", 1, "--json", cwd=self.folder, KOLO_DATA_DIR=mnist().parent))
        self.assertEqual(result.done["data"], "mnist")


if __name__ == "__main__":
    unittest.main()
