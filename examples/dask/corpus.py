"""Runs a corpus of sessions on a Dask cluster, one task per part.

    python corpus.py CORPUS OUT --parts 100 --scheduler tcp://head:8786 -- --strategy codex

The workers share a disk: CORPUS and OUT must be the same paths for all of them. Without --scheduler
the cluster consists of processes on this machine.

`ctxbench run --shard I/N` computes the rows of one part and puts them into a cache. When Dask gives a
task to another worker after a crash, the rows that are already in the cache are not computed again.
At the end the same command without --shard writes the results from the cache.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from dask.distributed import Client, LocalCluster, as_completed


def part(program, corpus, cache, i, n, options):
    """Computes one part of the rows on a worker."""
    command = [program, "run", str(corpus), "--shard", f"{i}/{n}", "--cache", str(cache)]
    # One thread: Dask decides how many tasks run on a machine.
    done = subprocess.run(command + ["--jobs", "1", *options], capture_output=True, text=True)
    # 1 means that a row ended with an error; the results show it.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"part {i} of {n}: {done.stderr.strip()}")
    return i


def run(client, corpus, out, parts, options=(), program="ctxbench", finished=lambda i: None):
    """Computes all parts on a cluster and writes the results into `out`."""
    cache = Path(f"{out}.cache")
    tasks = [
        client.submit(part, program, str(corpus), str(cache), i, parts, list(options), pure=False)
        for i in range(1, parts + 1)
    ]
    for task in as_completed(tasks):
        finished(task.result())
    command = [program, "run", str(corpus), "--cache", str(cache), "--out", str(out), *options]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise RuntimeError("the results could not be written")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", type=int, default=16, help="use several per worker")
    parser.add_argument("--scheduler", help="address of a running Dask scheduler")
    parser.add_argument("--program", default="ctxbench")
    parser.add_argument("options", nargs="*", help="options of ctxbench run, after --")
    args = parser.parse_args()
    with Client(args.scheduler) if args.scheduler else Client(LocalCluster()) as client:
        tell = lambda i: print(f"part {i} is finished", file=sys.stderr)
        run(client, args.corpus.resolve(), args.out.resolve(), args.parts, args.options,
            args.program, tell)


if __name__ == "__main__":
    main()
