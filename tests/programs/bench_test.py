#!/usr/bin/env python3
"""kolo-bench prints the rows that scripts read, and measures what it was asked for or says why not."""
import json
import unittest

from programs import ProgramTest, run


class Train(ProgramTest):
    def test_prints_a_row_for_each_model(self):
        result = self.assert_ok(run("kolo-bench", "train", "--models", "mlp,lenet", "--threads", 1, "--seconds", 0.05, "--json", ranks=2))
        rows = {row["model"]: row for row in result.events}
        self.assertEqual(list(rows), ["mlp", "lenet"])
        fields = {"model", "params", "ranks", "threads", "device", "precision", "feed", "fetch", "batch", "ms", "min_ms", "samples_per_s", "steps",
                  "loss", "peak_mib", "reduce_ms", "hidden_share", "extra_exchanges"}
        for row in rows.values():
            self.assertEqual(set(row), fields)
            self.assertEqual((row["ranks"], row["threads"]), (2, 1))
            self.assertLessEqual(row["min_ms"], row["ms"])
            self.assertGreater(row["reduce_ms"], 0)
            self.assertTrue(0 <= row["hidden_share"] <= 1, row)
            self.assertEqual(row["extra_exchanges"], 0)
            # Samples of all ranks in the time of the median step, which is rounded to a microsecond.
            self.assertAlmostEqual(row["samples_per_s"] * row["ms"] / (2000 * row["batch"]), 1, delta=0.01)
        self.assertEqual(rows["mlp"]["params"], 1863690)
        self.assertEqual(rows["lenet"]["params"], 3274634)


    def test_takes_the_size_of_a_model_of_tokens(self):
        size = ("--layers", 1, "--width", 16, "--heads", 2, "--context", 8, "--classes", 11, "--batch", 2)
        row, = self.assert_ok(run("kolo-bench", "train", "--models", "gpt", *size, "--threads", 1, "--seconds", 0.05, "--json")).events
        self.assertEqual(row["params"], 2 * 11 * 16 + 8 * 16 + 12 * 16 * 16 + 13 * 16 + 2 * 16)
        self.assertEqual(row["batch"], 2)
        for option in ("--context", "--width"):
            self.assert_one_line(run("kolo-bench", "train", "--models", "mlp", option, 8), 2, f"{option} cannot be chosen for mlp")

    def test_takes_the_dropout_of_gpt_and_the_side_of_pictures(self):
        size = ("--layers", 1, "--width", 16, "--heads", 2, "--context", 8, "--batch", 2, "--steps", 8, "--threads", 1, "--json")
        losses = [self.assert_ok(run("kolo-bench", "train", "--models", "gpt", *size, *more)).events[0]["loss"] for more in ((), ("--dropout", 0.25))]
        self.assertNotEqual(*losses)
        row, = self.assert_ok(run("kolo-bench", "train", "--models", "resnet20", "--side", 8, "--batch", 2, "--steps", 8, "--threads", 1, "--json")).events
        self.assertEqual(row["model"], "resnet20")
        for model, option, value, words in (("mlp", "--dropout", 0.1, "--dropout cannot be chosen for mlp"), ("gpt", "--side", 8, "--side cannot be chosen for gpt"),
                                            ("gpt", "--dropout", 1, '--dropout "1" is not valid; it must be a number from 0 to below 1')):
            self.assert_one_line(run("kolo-bench", "train", "--models", model, option, value), 2, words)


class Against(ProgramTest):
    """The peer is a script that prints the row of a program that is told to take 1000 ms a step."""
    ROW = {"model": "mlp", "params": 1863690, "ranks": 1, "threads": 1, "batch": 128, "ms": 1000, "min_ms": 900, "peak_mib": 77}

    def peer(self, *lines):
        path = self.folder / "peer"
        path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        path.chmod(0o755)
        return str(path)

    def against(self, *lines, ranks=1):
        return run("kolo-bench", "train", "--models", "mlp", "--threads", 1, "--seconds", 0.05, "--rounds", 2, "--json", "--against", self.peer(*lines), ranks=ranks)

    def test_prints_the_ratio_of_medians_behind_its_own_row(self):
        for ranks in (1, 2):
            row = json.dumps({**self.ROW, "ranks": ranks})
            asks = '[ "$*" = "--models mlp --seconds 0.05" ] || exit 3'
            free = '[ -z "$OMPI_COMM_WORLD_RANK" ] || exit 4'
            own, peer = self.assert_ok(self.against(asks, free, "echo not a row", f"echo '{row}'", ranks=ranks)).events
            self.assertEqual(set(peer), {"model", "peer", "ms", "min_ms", "peak_mib", "rounds", "ratio", "least_ratio", "largest_ratio"})
            self.assertEqual((peer["model"], peer["ms"], peer["min_ms"], peer["peak_mib"], peer["rounds"]), ("mlp", 1000, 900, 77, 2))
            self.assertTrue(peer["least_ratio"] <= peer["ratio"] * 1.001 and peer["ratio"] <= peer["largest_ratio"] * 1.001, peer)
            self.assertGreater(own["steps"], 15)

    def test_says_what_a_peer_did_that_cannot_be_compared(self):
        for lines, words in (
                (["exit 3"], "exit code 3"),
                (["echo hello"], "no line that is a JSON object"),
                (["echo '{\"model\": \"mlp\"}'"], "params"),
                ([f"echo '{json.dumps({**self.ROW, 'batch': 64})}'"], "batches of 64")):
            with self.subTest(words=words):
                self.assert_one_line(self.against(*lines), 1, "--against", words)


class Apart(ProgramTest):
    def test_holds_ranks_beside_themselves_without_reductions(self):
        result = self.assert_ok(run("kolo-bench", "train", "--models", "mlp", "--batch", 8, "--threads", 1, "--apart", "--rounds", 2, "--seconds", 0.01, "--json", ranks=2))
        step, apart = result.events
        self.assertEqual((step["model"], step["ranks"], step["steps"] >= 16), ("mlp", 2, True))
        self.assertEqual(set(apart), {"model", "apart_ms", "rounds", "ratio", "least_ratio", "largest_ratio"})
        self.assertEqual((apart["model"], apart["rounds"]), ("mlp", 2))
        self.assertTrue(0 < apart["least_ratio"] <= apart["ratio"] <= apart["largest_ratio"], apart)

    def test_needs_two_ranks(self):
        self.assert_one_line(run("kolo-bench", "train", "--models", "mlp", "--apart"), 1, "--apart", "1 rank")


class Ops(ProgramTest):
    def test_peak_prints_what_a_core_can_do(self):
        row, = self.assert_ok(run("kolo-bench", "peak", "--seconds", 0.1, "--json")).events
        self.assertEqual(set(row), {"instruction_set", "GFLOPs", "triad_GBps"})
        self.assertGreater(row["GFLOPs"], 0)
        self.assertGreater(row["triad_GBps"], 0)

    def test_prints_a_row_for_each_op_and_pass(self):
        rows = self.assert_ok(run("kolo-bench", "ops", "--seconds", 0.001, "--json")).events
        self.assertEqual({row["pass"] for row in rows}, {"forward", "backward"})
        self.assertTrue({"matmul", "conv2d", "batch_norm", "layer_norm", "self_attention"} <= {row["op"] for row in rows})
        for row in rows:
            self.assertTrue({"op", "where", "pass", "ms", "min_ms", "steps", "GBps", "share_of_triad"} <= set(row), row)
            self.assertLessEqual(row["min_ms"], row["ms"])
            self.assertGreater(row["min_ms"], 0)


class Allreduce(ProgramTest):
    def test_prints_a_row_of_kolo_and_one_of_mpi_for_each_size(self):
        for buffers in ("bucket", "user"):
            result = self.assert_ok(run("kolo-bench", "allreduce", "--sizes", "4,40000", "--buffers", buffers, "--json", ranks=2))
            self.assertEqual([(row["peer"], row["bytes"]) for row in result.events],
                             [("kolo", 4), ("mpi", 4), ("kolo", 40000), ("mpi", 40000)])
            for row in result.events:
                self.assertEqual(set(row), {"peer", "ranks", "bytes", "us", "min_us", "GBps", "busGBps", "buffers"})
                self.assertEqual((row["ranks"], row["buffers"]), (2, buffers))

    def test_needs_two_ranks(self):
        self.assert_one_line(run("kolo-bench", "allreduce"), 1, "needs two ranks")


class Executor(ProgramTest):
    def test_prints_a_row_for_each_graph_and_number_of_threads(self):
        result = self.assert_ok(run("kolo-bench", "executor", "--nodes", 50, "--seconds", 0.01, "--json"))
        self.assertEqual([(row["graph"], row["node_us"], row["threads"]) for row in result.events],
                         [("chain", 0, 1), ("chain", 0, 2), ("wide", 0, 1), ("wide", 0, 2), ("wide", 20, 1), ("wide", 20, 2)])
        fields = {"graph", "nodes", "threads", "node_us", "ns_per_node", "machine_ns_per_node", "compile_ms"}
        for row in result.events:
            self.assertEqual(set(row), fields)
            self.assertEqual(row["nodes"], 50)
            self.assertGreater(row["ns_per_node"], 0)


class Keras(ProgramTest):
    def test_prints_a_row_for_each_network_and_way(self):
        result = self.assert_ok(run("kolo-bench", "keras", "--threads", 1, "--seconds", 0.01, "--json"))
        self.assertEqual([(row["network"], row["batch"], row["way"]) for row in result.events],
                         [(*network, way) for network in (("digits", 128), ("dense", 1))
                          for way in ("fit", "callable", "monitored")])
        for row in result.events:
            self.assertEqual(set(row), {"network", "way", "ranks", "batch", "us", "min_us", "to_callable", "steps"})
            self.assertGreater(row["us"], 0)


class Cluster(ProgramTest):
    def test_prints_rows_or_says_that_there_is_no_grpc(self):
        result = run("kolo-bench", "cluster", "--what", "calls", "--seconds", 0.01, "--json")
        if "without gRPC" in result.err:
            self.skipTest("built without gRPC")
        row, = self.assert_ok(result).events
        self.assertEqual(set(row), {"peer", "what", "bytes", "us", "min_us", "GBps"})
        self.assertEqual((row["peer"], row["what"], row["bytes"]), ("kolo", "empty", 0))
        self.assertLessEqual(row["min_us"], row["us"])

    def test_trains_on_servers_that_it_starts(self):
        result = run("kolo-bench", "cluster", "--what", "async,sync", "--model", "mlp", "--workers", 2, "--servers", 1, "--steps", 20, "--json")
        if "without gRPC" in result.err:
            self.skipTest("built without gRPC")
        rows = self.assert_ok(result).events
        self.assertEqual([(row["what"], row["workers"], row["servers"]) for row in rows], [("async", 2, 1), ("sync", 2, 1)])
        for row in rows:
            self.assertEqual(row["bytes"], 4 * 1863690)
            self.assertGreater(row["own_us"], 0)


class CommandLine(ProgramTest):
    def refuse(self, args, *words, ranks=1):
        with self.subTest(args=args):
            self.assert_one_line(run("kolo-bench", *args, ranks=ranks), 2, *words)

    def test_refuses_what_it_cannot_measure(self):
        self.refuse((), "kolo-bench train")
        self.refuse(("tain",), 'did you mean "train"?')
        self.refuse(("cluster", "--what", "call"), 'did you mean "calls"?')
        self.refuse(("train", "--modles", "mlp"), "--modles", 'did you mean "--models"?')
        self.refuse(("train", "--models", ""), "--models")
        self.refuse(("train", "--models", "lenett"), 'did you mean "lenet"?')
        self.refuse(("train", "--seconds", "nan"), "--seconds", "nan")
        self.refuse(("train", "--threads", "0"), "--threads", "0")
        self.refuse(("train", "--against", "true", "--rounds", "0"), "--rounds", "0")
        self.refuse(("peak", "--seconds", "0"), "--seconds", "0")
        self.refuse(("executor", "--nodes", "0"), "--nodes", "0")
        self.refuse(("executor", "--threads", "1,x"), "--threads", "x")
        self.refuse(("allreduce", "--sizes", ""), "--sizes")
        self.refuse(("allreduce", "--sizes", "6"), "--sizes", "multiples of 4")
        self.refuse(("allreduce", "--algorithm", "rnig"), "--algorithm", 'did you mean "ring"?')
        self.refuse(("allreduce", "--buffers", "none"), "--buffers", "none")

    def test_rank_0_alone_says_what_all_ranks_found(self):
        self.refuse(("allreduce", "--algorithm", "rnig"), "rnig", ranks=2)


if __name__ == "__main__":
    unittest.main()
