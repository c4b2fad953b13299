#!/usr/bin/env python3
"""Ranks whose GPUs reduce gradients by a libnccl.so.2 that is not NVIDIA's: it compares what the ranks do, and fails as
it is told to (KOLO_FAKE_NCCL, see fake_nccl.cc)."""
import re
import subprocess
import unittest

from fake_gpu import CALM, DRIVER, FAKE, GPU, SMALL, WHOLE, FakeGpuTest
from programs import BIN, SLOWDOWN, environment, finish, mpirun, run, start

ARGS = ("--steps", 3, *CALM)
MLP = ("--model", "mlp", *ARGS)
FIRST = 2  # the first sum of a training; that before it tries the connections
BY_NCCL = "gradients are reduced by NCCL 2.28.9 on the GPUs"
STAGED = "gradients travel through the host's memory"
# A machine that does something else as well needs 3 s for a step now and then; nothing of kolo's is to hang longer than that.
LIMITS = {"KOLO_NCCL_INIT_TIMEOUT_S": 3 * SLOWDOWN, "KOLO_STALL_ABORT_S": 3 * SLOWDOWN}
DEADLINE_S = 60
STAGED_LOSSES = {}  # of trainings that several tests compare with; the data are the same


class NcclTest(FakeGpuTest):
    def train_ranks(self, ranks, *args, **env):
        return self.train("gpu", *args, ranks=ranks, **{"KOLO_FAKE_CUDA_GPUS": ranks, **env})

    def losses_of(self, ranks, *args, **env):
        result = self.assert_ok(self.train_ranks(ranks, *args, **env))
        self.assertNotIn("fake_cuda:", result.err)
        return {e["global_step"]: e["loss"] for e in result.events if e["event"] == "progress"}, result.err

    def staged_losses(self, ranks, *args):
        if (ranks, args) not in STAGED_LOSSES:
            STAGED_LOSSES[ranks, args], log = self.losses_of(ranks, *args, KOLO_ALLREDUCE="mpi")
            self.assertNotIn("NCCL", log)
        return STAGED_LOSSES[ranks, args]


class Training(NcclTest):
    def test_two_ranks_train_to_the_bits_of_the_staged_path(self):
        for model in ("mlp", "lenet"):
            with self.subTest(model=model):
                args = ("--model", model, *ARGS)
                ours, log = self.losses_of(2, *args)
                self.assertIn(BY_NCCL, log)
                self.assertEqual(ours, self.staged_losses(2, *args))

    def test_sums_come_before_the_kernels_of_the_step(self):
        log = self.folder / "calls"
        self.losses_of(1, *MLP, KOLO_FAKE_CUDA_LOG=log, KOLO_ALLREDUCE="nccl")
        of_one = log.read_text().split().count("cudaStreamCreateWithPriority")
        self.losses_of(2, *MLP, KOLO_FAKE_CUDA_LOG=log)
        self.assertEqual((of_one, log.read_text().split().count("cudaStreamCreateWithPriority")), (0, 1))

    def test_a_step_has_no_more_than_two_launches_a_bucket(self):
        calls = {}
        for steps in (4, 8):
            log = self.folder / "calls"
            self.losses_of(2, "--model", "lenet", *CALM, "--steps", steps, KOLO_FAKE_CUDA_LOG=log, KOLO_BUCKET_BYTES=65536)
            calls[steps] = log.read_text().split()
        launches, sums = ((calls[8].count(name) - calls[4].count(name)) / 4 for name in ("cudaGraphLaunch", "ncclAllReduce"))
        self.assertGreater(sums, 1)
        self.assertLessEqual(launches, 2 * sums)

    def test_four_ranks_train_as_on_the_staged_path(self):
        ours, log = self.losses_of(4, *MLP, KOLO_ALLREDUCE="nccl")
        self.assertIn(BY_NCCL, log)
        self.assert_close(ours, self.staged_losses(4, *MLP))

    def test_a_library_that_takes_its_time_changes_nothing(self):
        self.assertEqual(self.losses_of(2, *MLP, KOLO_FAKE_NCCL="slow:-1")[0], self.staged_losses(2, *MLP))

    def test_gradients_that_are_summed_for_some_steps_first(self):
        args = ("--model", "mlp", "--steps", 2, *CALM, "--backward-passes", 2)
        ours, log = self.losses_of(2, *args)
        self.assertIn(BY_NCCL, log)
        self.assertEqual(ours, self.staged_losses(2, *args))

    def test_sharded_updates_stay_on_the_staged_path(self):
        ours, log = self.losses_of(2, *MLP, "--sharded")
        self.assertNotIn("NCCL", log)
        self.assert_close(ours, self.staged_losses(2, *MLP))

    def test_the_log_of_streams_has_no_conflict_and_needs_each_wait(self):
        log = self.folder / "order"
        self.losses_of(2, "--model", "lenet", "--steps", 2, *CALM, KOLO_CUDA_LOG=log)
        for rank in range(2):
            self.assert_ordered(self.folder / f"order.{rank}", fences=False)

    def test_sums_and_averages_are_exact(self):
        for ranks in (2, 3, 4):
            self.assert_ok(run("../tests/nccl_probe", "sums", ranks=ranks, **GPU, KOLO_FAKE_CUDA_GPUS=ranks))

    def test_the_end_of_data_travels_with_a_bucket(self):
        for ranks in (2, 4):
            self.assert_ok(run("../tests/nccl_probe", "end", ranks=ranks, **GPU, KOLO_FAKE_CUDA_GPUS=ranks))

    def test_a_rank_that_fails_alone_takes_its_sum_back(self):
        result = run("../tests/nccl_probe", "fail", ranks=2, **GPU, KOLO_FAKE_CUDA_GPUS=2)
        self.assertIn("the bucket: this rank failed: of a test", result.out)

    def test_a_rank_that_leaves_the_order_is_seen(self):
        result = run("../tests/nccl_probe", "swap", 1, ranks=2, **GPU, KOLO_FAKE_CUDA_GPUS=2)
        self.assertIn("another order", result.err)
        self.assertNotEqual(result.code, 0)


class Fallback(NcclTest):
    """One warning, and the training goes on."""

    def assert_staged(self, why, ranks=2, **env):
        ours, log = self.losses_of(ranks, *MLP, **env)
        warnings = [line for line in log.splitlines() if STAGED in line]
        self.assertEqual(len(warnings), 1, log)
        self.assertRegex(warnings[0], why)
        self.assert_close(ours, self.staged_losses(ranks, *MLP))

    def test_two_ranks_on_one_gpu(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                self.assert_staged("ranks 0 and [12] on .* share the GPU 0000:3B:00.0", ranks, KOLO_FAKE_CUDA_GPUS=ranks // 2)

    def train_on_slices(self, **env):
        script = 'CUDA_VISIBLE_DEVICES=MIG-0$OMPI_COMM_WORLD_LOCAL_RANK exec "$0" "$@"'
        return finish(start("kolo-train", "--data", self.folder, *SMALL, "--device", "gpu", *MLP, launcher=[*mpirun(2), "sh", "-c", script],
                            **GPU, KOLO_FAKE_CUDA_GPUS=2, KOLO_FAKE_CUDA_SLICES=1, **env))

    def test_each_of_two_ranks_has_a_slice_of_one_gpu(self):
        """MIG: told apart by their UUIDs, each with its memory for itself; but NCCL refuses them."""
        result = self.assert_ok(self.train_on_slices())
        self.assertRegex(result.err, r"ranks 0 and 1 on .* share the GPU 0000:3B:00.0 \(GPU-01000000-")
        self.assertEqual(result.err.count(STAGED), 1)
        ours = {e["global_step"]: e["loss"] for e in result.events if e["event"] == "progress"}
        self.assert_close(ours, self.staged_losses(2, *MLP))
        short = self.train_on_slices(KOLO_FAKE_CUDA_TAKEN=1008)
        self.assertEqual(short.code, 1, short.err)
        limit = re.search(r"bytes are in use of the limit of (\d+) bytes", short.err)
        self.assertTrue(limit, short.err)
        self.assertLess(int(limit[1]), 16 << 20, "more than is free: a share, as of a GPU that both have")

    def test_no_library_that_serves(self):
        library = self.folder / "libnccl.so.2"  # opens, and has nothing of NCCL
        library.symlink_to(f"{DRIVER}/libcuda.so.1")
        self.assert_staged("without NCCL: rank 0 on .*lacks ncclGetUniqueId",
                           KOLO_CUDA_LIBRARIES=f"{self.folder}:{FAKE / 'libraries'}")

    def test_nccl_by_order_where_it_cannot_be(self):
        result = self.train_ranks(2, *MLP, KOLO_ALLREDUCE="nccl", KOLO_FAKE_CUDA_GPUS=1)
        self.assertEqual(result.code, 1, result.err)
        self.assertIn("KOLO_ALLREDUCE=nccl was asked for, but it cannot be: ranks 0 and 1", result.err)


class Faults(NcclTest):
    """The job ends on all ranks, with a line that names the rank and the step."""

    def assert_told(self, *cases):
        """Each case: what goes wrong, the line, numbers of ranks (2 and 4). Their jobs run at the same time: they wait most of it."""
        jobs = []
        for wish, text, *ranks in cases:
            for count in ranks or (2, 4):
                job = start("kolo-train", "--data", self.folder, *SMALL, "--device", "gpu", *MLP, ranks=count, **GPU, **LIMITS,
                            KOLO_FAKE_CUDA_GPUS=count, KOLO_FAKE_NCCL=wish)
                jobs.append((wish, text, count, job))
        for wish, text, count, result in [(*case, finish(job, DEADLINE_S)) for *case, job in jobs]:
            with self.subTest(wish=wish, ranks=count):
                self.assertNotEqual(result.code, 0, result.err)
                self.assertRegex(result.err, text)
                for never in ("fake_cuda:", "terminate called"):
                    self.assertNotIn(never, result.err)

    def test_a_rank_dies(self):
        self.assert_told(("kill_at_load:1", "rank 1 on .* is gone"), ("kill_in_init:1", "rank 1 on .* is gone"))
        self.assert_told((f"kill:1:{FIRST + 3}", r"rank 1 on .* is gone \(last step \d+\)"))

    def test_init_never_ends(self):
        self.assert_told(("hang_in_init:1", r"does not connect the ranks' GPUs before the first step: no connection within \d+ s .* on ranks 0, 1"))

    def test_a_first_sum_never_comes_or_is_wrong(self):
        self.assert_told(("hang:1:1", r"before the first step: a first sum has not come within \d+ s", 2),
                         ("wrong:1", "before the first step: a first sum is wrong: element 0 is .* on rank 1", 2))

    def test_a_bucket_never_comes(self):
        self.assert_told((f"hang:1:{FIRST + 4}", r"kolo-train: rank \d: step \d+, bucket \d of the training step .*NCCL has not finished"))

    def test_an_error_on_one_rank(self):
        self.assert_told((f"error:1:{FIRST + 4}", r"kolo-train: rank 1: step \d+, bucket \d of .*remote process exited"))

    def test_abort_never_returns(self):
        self.assert_told((f"hang:1:{FIRST + 4},abort_hang:-1", r"rank \d: step \d+.*ncclCommAbort has not returned", 2))

    def test_versions_differ(self):
        self.assert_told(("version:1", r"NCCL is 2.28.9 on rank 0 .* but 2.27.3 on rank 1"))

    def assert_differs(self, of_rank_1, text, ranks=2, **env_of_rank_1):
        done = self.ranks_of(of_rank_1, ranks, **env_of_rank_1)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, text)

    def ranks_of(self, of_rank_1, ranks=2, **env_of_rank_1):
        """Rank 1 has other arguments, or another environment."""
        def part(count, args, **env):
            words = ["env", *(f"{k}={v}" for k, v in env.items()), BIN / "kolo-train", "--data", self.folder, *SMALL, *args]
            return ["-n", str(count), *map(str, words), ":"]

        alike = ("--device", "gpu", *MLP)
        line = [*mpirun(1)[:-2], *part(1, alike), *part(1, of_rank_1, **env_of_rank_1), *(part(ranks - 2, alike) if ranks > 2 else [])]
        return subprocess.run(line[:-1], capture_output=True, text=True, timeout=DEADLINE_S * SLOWDOWN, stdin=subprocess.DEVNULL,
                              env=environment(**GPU, **LIMITS, KOLO_FAKE_CUDA_GPUS=ranks))

    def test_one_rank_loses_its_gpu(self):
        log = self.folder / "calls"
        self.losses_of(2, *MLP, KOLO_FAKE_CUDA_LOG=log)
        # Who waits asks more often: that many calls there are in any run.
        calls = sum(name not in ("cudaEventQuery", "cudaSetDevice") for name in log.read_text().split())
        lost = "(cudaErrorIllegalAddress|CUBLAS_STATUS_EXECUTION_FAILED)"  # by which library it is met first
        for part in range(2, 9) if WHOLE else (2, 5, 8):  # where the ranks connect, take rank 0's variables, and train
            with self.subTest(part=part):
                self.assert_differs(("--device", "gpu", *MLP), rf"rank 1: .*{lost}|{lost}.* on rank 1",
                                    KOLO_FAKE_CUDA_FAIL=f"{calls * part // 8}:700")

    def test_each_call_of_one_rank_may_fail(self):
        """Every so many, from where the ranks connect on: all ranks end, with one line that names what failed, and nothing is left
        behind; or the call was not needed."""
        log = self.folder / "calls"
        self.losses_of(2, *MLP, KOLO_FAKE_CUDA_LOG=log)  # of one of the two
        calls = [name for name in log.read_text().split("\n")[:-1] if not name.endswith(" ahead")]
        first = next(k for k, name in enumerate(calls, 1) if name.startswith("nccl"))
        for k in range(first, len(calls), max(1, (len(calls) - first) // (24 if WHOLE else 8))):
            with self.subTest(k=k):
                done = self.ranks_of(("--device", "gpu", *MLP), KOLO_FAKE_CUDA_FAIL=f"{k}:1", KOLO_FAKE_CUDA_LOG=log)
                message = f"{done.returncode}\n{done.stderr[-3000:]}"
                for never in ("fake_cuda:", "terminate called"):
                    self.assertNotIn(never, done.stderr, message)
                if done.returncode != 0:
                    self.assertRegex(done.stderr, r"kolo-train: .*(cuda|cublas|CUBLAS|nccl|NCCL)", message)

    def test_one_rank_has_no_gpu(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                self.assert_differs(MLP, "the kind of device is GPU on rank 0 but CPU on rank 1", ranks, KOLO_FAKE_CUDA_GPUS=0)

    def test_one_rank_has_another_plan(self):
        self.assert_differs(("--device", "gpu", "--model", "lenet", *ARGS), "Ranks disagree on the training step: ")


if __name__ == "__main__":
    unittest.main()
