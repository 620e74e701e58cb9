"""A corpus of sessions on a Dask cluster: a task for each part, and the parts as one.

    python corpus.py CORPUS OUT --parts 100 --scheduler tcp://head:8786 -- --strategy codex

The workers share a disk: CORPUS, OUT and the folder of parts must be the same paths for all of them.
Without --scheduler the cluster is one of processes on this machine.

Nothing here knows about sessions. `ctxbench run --shard I/N` takes its part of them, and goes on
where an earlier attempt of the same part broke off, so a task that Dask gives to another worker after
a crash computes no row twice. `ctxbench merge` writes the bytes that one run would have written.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from dask.distributed import Client, LocalCluster, as_completed


def part(program, corpus, folder, i, n, options):
    """One part of the run, by the program, on whichever worker."""
    out = Path(folder) / f"part-{i:05}-of-{n:05}"
    command = [program, "run", str(corpus), "--shard", f"{i}/{n}", "--out", str(out)]
    # One thread: Dask decides how many tasks a machine takes.
    done = subprocess.run(command + ["--jobs", "1", *options], capture_output=True, text=True)
    # 1 = a check failed, which is a result, too.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"part {i} of {n}: {done.stderr.strip()}")
    return str(out)


def run(client, corpus, out, parts, options=(), program="ctxbench", finished=lambda out: None):
    """Runs all parts on a cluster and merges them into `out`."""
    folder = Path(f"{out}.parts")
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [
        client.submit(part, program, str(corpus), str(folder), i, parts, list(options), pure=False)
        for i in range(1, parts + 1)
    ]
    made = []
    for task in as_completed(tasks):
        made.append(task.result())
        finished(made[-1])
    subprocess.run([program, "merge", *sorted(made), "--out", str(out)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", type=int, default=16, help="several for each worker")
    parser.add_argument("--scheduler", help="address of a running Dask scheduler")
    parser.add_argument("--program", default="ctxbench")
    parser.add_argument("options", nargs="*", help="options of ctxbench run, behind --")
    args = parser.parse_args()
    with Client(args.scheduler) if args.scheduler else Client(LocalCluster()) as client:
        tell = lambda out: print(out, file=sys.stderr)
        run(client, args.corpus.resolve(), args.out.resolve(), args.parts, args.options,
            args.program, tell)


if __name__ == "__main__":
    main()
