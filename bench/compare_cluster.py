#!/usr/bin/env python3
"""Steps over several tasks and their values, against plain gRPC that moves the same bytes in the same chunks.

  bench/compare_cluster.py [--rounds 5] [--seconds 1] [--rate 1gbit] [--train | --exchange] [--json]

`kolo-bench cluster` and `kolo-grpc-peer` in turns, over loopback, or, with --rate (needs root), between two hosts made of network
namespaces (tests/hosts/hosts.py) whose links have that rate; then plain TCP stands beside them. A Markdown table: medians over the
rounds of each run's median, the least time of all runs, and kolo's median over gRPC's of what moves the same bytes (an echo of so many,
for small values). With --train: the steps of workers on parameter servers, beside `DistributedOptimizer` on as many ranks, and what such a
step would take if it only computed and then moved its bytes by plain gRPC, as many pairs of processes doing so at once; with --rate, too, each task has a host of its own. With --exchange (needs --rate): two
workers, each on a host of its own, pull all parameters and push as many bytes at once, from one parameter server and from two.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
sys.path.insert(0, str(SOURCE / "bench"))
import hosts  # noqa: E402

PORTS = {"kolo": 2222, "grpc": 2224}


def rows_of(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def run_here(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"compare_cluster.py: {words[0]}: {done.stderr.strip().splitlines()[-1:]}")
    return rows_of(done.stdout)


class Loopback:
    tcp = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def measure(self, peer, seconds):
        if peer == "kolo":
            return run_here([hosts.BIN / "kolo-bench", "cluster", "--json", "--seconds", seconds])
        return run_here([hosts.BIN / "kolo-grpc-peer", "--seconds", seconds])


class TwoHosts:
    """Servers on the second host, which is asked by the first one."""

    def __init__(self, rate):
        self.hosts = hosts.Hosts(2, 1, rate)

    def __enter__(self):
        self.cluster = self.hosts.__enter__()
        self.here, there = self.cluster.names[:2]
        address = self.cluster.address(there)
        self.spec = f"ps|{address}:{PORTS['kolo']},worker|{self.cluster.address(self.here)}:{PORTS['kolo']}"
        self.peer = f"{address}:{PORTS['grpc']}"
        self.servers = [
            self.cluster.popen([hosts.BIN / "kolo-server", "--cluster", self.spec, "--job", "ps", "--task", 0], host=there),
            self.cluster.popen([hosts.BIN / "kolo-grpc-peer", "serve", self.peer], host=there, stdout=subprocess.PIPE, text=True)]
        self.servers[1].stdout.readline()
        import compare_hosts
        self.tcp = compare_hosts.tcp_bytes_per_s(self.cluster)
        return self

    def __exit__(self, *error):
        for server in self.servers:
            server.terminate()
        self.hosts.__exit__(*error)

    def measure(self, peer, seconds):
        words = ["kolo-bench", "cluster", "--json", "--cluster", self.spec] if peer == "kolo" else ["kolo-grpc-peer", self.peer]
        done = self.cluster.run([hosts.BIN / words[0], *words[1:], "--seconds", seconds], host=self.here, deadline=600)
        if done.code != 0:
            sys.exit(f"compare_cluster.py: {words[0]}: {done}")
        return rows_of(done.out)


def compare(options):
    runs = {}
    with TwoHosts(options.rate) if options.rate else Loopback() as place:
        for _ in range(options.rounds):
            for peer in ("kolo", "grpc"):
                for row in place.measure(peer, options.seconds):
                    runs.setdefault((row["what"], row["bytes"], peer), []).append(row)
    if place.tcp and not options.json:
        print(f"plain TCP, both directions busy: {place.tcp / 1e6:.1f} MB/s each\n")
    if not options.json:
        print("| what | bytes | kolo µs: median, min | gRPC: what | µs: median, min | kolo ÷ gRPC | kolo GB/s | gRPC GB/s |\n" + "|---" * 8 + "|")
    for (what, size, peer), rows in runs.items():
        if peer != "kolo":
            continue
        other = what if (what, size, "grpc") in runs else "echo"
        against = runs[other, size, "grpc"]
        us, min_us = zip(*[(statistics.median(r["us"] for r in side), min(r["min_us"] for r in side)) for side in (rows, against)])
        row = {"what": what, "bytes": size, "us": us[0], "min_us": min_us[0], "grpc": other, "grpc_us": us[1], "grpc_min_us": min_us[1],
               "ratio": us[0] / us[1], "GBps": size / us[0] / 1e3, "grpc_GBps": size / us[1] / 1e3}
        print(json.dumps(row) if options.json else
              f"| {what} | {size:,} | {us[0]:,.0f}, {min_us[0]:,.0f} | {other} | {us[1]:,.0f}, {min_us[1]:,.0f} | {row['ratio']:.2f} | {row['GBps']:.3f} | {row['grpc_GBps']:.3f} |")


def plain_us_per_byte(pairs, options):
    """Pulled and pushed back by plain gRPC, all pairs of processes at once, which share the cores."""
    peers = [subprocess.Popen([hosts.BIN / "kolo-grpc-peer", "--seconds", str(options.seconds)], stdout=subprocess.PIPE, text=True)
             for _ in range(pairs)]
    rows = [row for peer in peers for row in rows_of(peer.communicate(timeout=300)[0])]
    return sum(statistics.median(row["us"] / row["bytes"] for row in rows if row["what"] == what) for what in ("pull", "push"))


def train(options):
    """Medians of a worker's, or rank's, step."""
    runs, ranks, plain = {}, {}, {}
    for _ in range(options.rounds):
        for what in ("async", "sync"):
            for row in run_here([hosts.BIN / "kolo-bench", "cluster", "--json", "--what", what, "--steps", options.steps]):
                runs.setdefault((what, row["workers"], row["servers"]), []).append(row)
        for workers in (1, 2, 4):
            plain.setdefault(workers, []).append(plain_us_per_byte(workers, options))
            words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", workers] if workers > 1 else []
            ranks.setdefault(workers, []).extend(run_here([*words, hosts.BIN / "kolo-bench", "train", "--json", "--models", "lenet",
                                                           "--threads", 1, "--optimizer", "sgd", "--seconds", options.seconds]))
    if not options.json:
        print("| workers | servers | async ms: median, min | sync ms | computing alone ms | and plain gRPC ms | DistributedOptimizer ms | servers' MiB, growth |\n" + "|---" * 8 + "|")
    for (what, workers, servers), rows in runs.items():
        if what != "async":
            continue
        side = [rows, runs["sync", workers, servers]]
        us, min_us = zip(*[(statistics.median(r["us"] for r in s) / 1e3, min(r["min_us"] for r in s) / 1e3) for s in side])
        own = statistics.median(r["own_us"] for s in side for r in s) / 1e3
        moved = own + rows[0]["bytes"] * statistics.median(plain[workers]) / 1e3
        beside = statistics.median(r["ms"] for r in ranks[workers]), min(r["min_ms"] for r in ranks[workers])
        mib = statistics.median(r["server_mib"] for s in side for r in s)
        growth = max(r["growth_mib"] for s in side for r in s)
        row = {"workers": workers, "servers": servers, "async_ms": us[0], "async_min_ms": min_us[0], "sync_ms": us[1], "sync_min_ms": min_us[1],
               "own_ms": own, "own_and_plain_ms": moved, "distributed_ms": beside[0], "distributed_min_ms": beside[1], "server_mib": mib, "growth_mib": growth}
        print(json.dumps(row) if options.json else
              f"| {workers} | {servers} | {us[0]:.1f}, {min_us[0]:.1f} | {us[1]:.1f}, {min_us[1]:.1f} | {own:.1f} | {moved:.1f} | {beside[0]:.1f}, {beside[1]:.1f} | {mib:.0f}, {growth:+.1f} |")


def on_hosts(cluster, servers, workers, words):
    """Of each worker: its row. Hosts: two for servers, then the workers'."""
    address = [f"{cluster.address(name)}:{PORTS['kolo']}" for name in cluster.names]
    spec = f"ps|{';'.join(address[:servers])},worker|{';'.join(address[2:2 + workers])}"
    tasks = [cluster.popen([hosts.BIN / "kolo-server", "--cluster", spec, "--job", "ps", "--task", i], host=cluster.names[i])
             for i in range(servers)]
    try:
        running = [cluster.popen([hosts.BIN / "kolo-bench", "cluster", "--json", "--cluster", spec, "--task", i, *words],
                                 host=cluster.names[2 + i], stdout=subprocess.PIPE, text=True)
                   for i in range(workers)]
        return [row for worker in running for row in rows_of(worker.communicate(timeout=300)[0])]
    finally:
        for task in tasks:
            task.terminate()
        for task in tasks:
            task.wait(timeout=60)  # the next one listens at the same port


def train_on_hosts(options):
    """The same over links, a host for each task, or rank."""
    runs, ranks = {}, {}
    with hosts.Hosts(6, 1, options.rate) as cluster:
        for _ in range(options.rounds):
            for workers in (1, 2, 4):
                for servers in (1, 2):
                    for what in ("async", "sync"):
                        runs.setdefault((workers, servers, what), []).extend(
                            on_hosts(cluster, servers, workers, ["--what", what, "--steps", options.steps]))
                places = ",".join(f"{name}:1" for name in cluster.names[2:2 + workers])
                words = ["mpirun", "--host", places, "--bind-to", "none", "-n", workers] if workers > 1 else []
                done = cluster.run([*words, hosts.BIN / "kolo-bench", "train", "--json", "--models", "lenet", "--threads", 1,
                                    "--optimizer", "sgd", "--seconds", options.seconds], host=cluster.names[2], deadline=300)
                if done.code != 0:
                    sys.exit(f"compare_cluster.py: kolo-bench train: {done}")
                ranks.setdefault(workers, []).extend(rows_of(done.out))
    if not options.json:
        print("| workers | servers | async ms: median, min | sync ms | DistributedOptimizer ms |\n" + "|---" * 5 + "|")
    for workers, servers in sorted({key[:2] for key in runs}):
        row = {"workers": workers, "servers": servers}
        for name, rows, median, least in (("async", runs[workers, servers, "async"], "us", "min_us"),
                                          ("sync", runs[workers, servers, "sync"], "us", "min_us"),
                                          ("distributed", ranks[workers], "ms", "min_ms")):
            scale = 1e3 if median == "us" else 1
            row[f"{name}_ms"] = statistics.median(r[median] for r in rows) / scale
            row[f"{name}_min_ms"] = min(r[least] for r in rows) / scale
        print(json.dumps(row) if options.json else f"| {workers} | {servers} | " + " | ".join(
            f"{row[f'{name}_ms']:.1f}, {row[f'{name}_min_ms']:.1f}" for name in ("async", "sync", "distributed")) + " |")


def exchange(options):
    import compare_hosts
    runs, tcp = {}, []
    with hosts.Hosts(4, 1, options.rate) as cluster:
        for _ in range(options.rounds):
            tcp.append(compare_hosts.tcp_bytes_per_s(cluster))
            for servers in (1, 2):
                runs.setdefault(servers, []).extend(on_hosts(cluster, servers, 2, ["--what", "exchange", "--seconds", options.seconds]))
    link = statistics.median(tcp) / 1e6
    if not options.json:
        print(f"plain TCP, both directions busy: {link:.1f} MB/s each\n")
        print("| servers | a worker's ms: median, min | MB/s of a worker, each way | of all workers | share of the links that limit |\n" + "|---" * 5 + "|")
    for servers, rows in runs.items():
        us, least, size = statistics.median(r["us"] for r in rows), min(r["min_us"] for r in rows), rows[0]["bytes"]
        rate = size / us
        row = {"servers": servers, "us": us, "min_us": least, "MBps": rate, "all_MBps": 2 * rate, "share": 2 * rate / (servers * link)}
        print(json.dumps(row) if options.json else
              f"| {servers} | {us / 1e3:.1f}, {least / 1e3:.1f} | {rate:.1f} | {2 * rate:.1f} | {row['share']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rate")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--exchange", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.exchange and not options.rate:
        parser.error("--exchange measures links; say how fast they are: --rate 1gbit")
    if options.rate:
        hosts.enter()
    measure = train_on_hosts if options.train and options.rate else train if options.train else exchange if options.exchange else compare
    measure(options)


if __name__ == "__main__":
    main()
