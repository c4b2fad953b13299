#!/usr/bin/env python3
"""Allreduce over hosts with two ranks each, on links of known speed, against what the links allow.

  bench/compare_hosts.py [--hosts 2] [--rate 1gbit] [--bytes 16777216] [--rounds 3] [--algorithms hierarchical,ring] [--json]

In turns, on hosts made of network namespaces (tests/hosts/hosts.py; needs root): the bandwidth of plain TCP, both directions
busy, then kolo with each algorithm and MPI_Allreduce beside it. The bound is what any allreduce must move between h hosts:
2(h-1)/h of the bytes through each link. A Markdown table of medians over the rounds; the ratio is time over the bound.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import hosts  # noqa: E402

SLOTS = 2
TCP_BYTES = 64 << 20
# One end of a connection that sends and receives at once, and prints the bytes each direction has carried in a second.
TCP = """
import socket, sys, threading, time
address, total = sys.argv[1], int(sys.argv[2])
if len(sys.argv) > 3:
    server = socket.create_server((address, 5001)); print("ready", flush=True); s = server.accept()[0]
else:
    s = socket.create_connection((address, 5001))
block, got = bytes(1 << 20), 0
sender = threading.Thread(target=lambda: [s.sendall(block) for _ in range(total >> 20)])
begin = time.monotonic(); sender.start()
while got < total: got += len(s.recv(1 << 20))
sender.join(); print(total / (time.monotonic() - begin))
"""


def tcp_bytes_per_s(cluster):
    there, here = cluster.names[1], cluster.names[0]
    command = [sys.executable, "-c", TCP, cluster.address(there), TCP_BYTES]
    server = cluster.popen([*command, "server"], host=there, stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    rates = [float(cluster.run(command, host=here).out), float(server.communicate(timeout=60)[0])]
    return min(rates)


def allreduce_us(cluster, algorithm, options):
    """Median microseconds of kolo and of MPI, from one run that calls them in turns."""
    command = ["mpirun", "--hostfile", cluster.hostfile, "--bind-to", "none", hosts.BIN / "kolo-bench", "allreduce", "--json",
               "--sizes", options.bytes, "--algorithm", algorithm]
    result = cluster.run(command, deadline=300)
    if result.code != 0:
        sys.exit(f"compare_hosts.py: {algorithm}: {result}")
    return {row["peer"]: row["us"] for row in map(json.loads, result.out.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--bytes", type=int, default=16 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--algorithms", default="hierarchical,ring")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    hosts.enter()
    algorithms = options.algorithms.split(",")
    rates, times = [], {}
    with hosts.Hosts(options.hosts, SLOTS, options.rate) as cluster:
        for _ in range(options.rounds):
            rates.append(tcp_bytes_per_s(cluster))
            for algorithm in algorithms:
                for peer, us in allreduce_us(cluster, algorithm, options).items():
                    times.setdefault(f"kolo {algorithm}" if peer == "kolo" else "MPI_Allreduce", []).append(us)
    bandwidth = statistics.median(rates)
    bound_ms = 2 * (options.hosts - 1) / options.hosts * options.bytes / bandwidth * 1e3
    if not options.json:
        print(f"{options.hosts} hosts with {SLOTS} ranks each, {options.bytes} bytes; TCP {bandwidth / 1e6:.1f} MB/s in each direction, bound {bound_ms:.1f} ms\n")
        print("| allreduce | median ms | over the bound | bus MB/s between hosts |\n|---|---|---|---|")
    for name, measured in times.items():
        ms = statistics.median(measured) / 1e3
        row = {"allreduce": name, "bytes": options.bytes, "tcp_MBps": bandwidth / 1e6, "bound_ms": bound_ms, "ms": ms, "ratio": ms / bound_ms}
        print(json.dumps(row) if options.json else f"| {name} | {ms:.1f} | {ms / bound_ms:.2f}x | {bound_ms / ms * bandwidth / 1e6:.1f} |")


if __name__ == "__main__":
    main()
