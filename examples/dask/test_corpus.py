"""Runs the example on a local cluster and kills one of its workers.

    python test_corpus.py PROGRAM CORPUS
"""

import filecmp
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from dask.distributed import Client, LocalCluster

import corpus as example

# Differs from run to run.
TIMES = "timings.json"


def files(folder):
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return sorted(str(p) for p in found if p.name != TIMES and p.parts[0] != ".rows")


def main(program, corpus):
    options = ["--transport", "direct"]
    for strategy in ["reference", "codex", "opencode", "none"]:
        options += ["--strategy", strategy]
    with tempfile.TemporaryDirectory() as scratch:
        whole, parted = Path(scratch, "whole"), Path(scratch, "parted")
        subprocess.run([program, "run", corpus, *options, "--out", whole], check=True,
                       capture_output=True)
        with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                killed = []

                def kill_one(i):
                    if not killed:
                        busy = [w for w, tasks in client.processing().items() if tasks]
                        address = (busy or list(client.scheduler_info()["workers"]))[0]
                        [pid] = client.run(os.getpid, workers=[address]).values()
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

                example.run(client, corpus, parted, parts=8, options=options, program=program,
                            finished=kill_one)
                assert killed, "no worker was killed"
        assert files(whole) == files(parted), set(files(whole)) ^ set(files(parted))
        _, differ, broken = filecmp.cmpfiles(whole, parted, files(whole), shallow=False)
        assert not differ and not broken, (differ, broken)
        print(f"{len(files(whole))} files of 8 parts are those of one run; "
              f"worker {killed[0]} was killed")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
