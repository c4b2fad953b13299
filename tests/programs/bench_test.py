#!/usr/bin/env python3
"""kolo-bench prints the rows that scripts read, and measures what it was asked for or says why not."""
import unittest

from programs import ProgramTest, run


class Train(ProgramTest):
    def test_prints_a_row_for_each_model(self):
        result = self.assert_ok(run("kolo-bench", "train", "--models", "mlp,lenet", "--threads", 1, "--seconds", 0.05, "--json", ranks=2))
        rows = {row["model"]: row for row in result.events}
        self.assertEqual(list(rows), ["mlp", "lenet"])
        fields = {"model", "params", "ranks", "threads", "batch", "ms", "min_ms", "samples_per_s", "steps", "peak_mib", "reduce_ms", "hidden_share", "extra_exchanges"}
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
