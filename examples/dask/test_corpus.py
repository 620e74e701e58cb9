"""The example on a local cluster of processes, one of whose workers is killed in the middle.

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

# Of this machine, and of nothing else.
TIMES = "timings.json"


def files(folder):
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return sorted(str(p) for p in found if p.name not in (TIMES, ".ctxbench"))


def main(program, corpus):
    options = ["--transport", "direct"]
    for strategy in ["reference", "codex", "opencode", "none"]:
        options += ["--strategy", strategy]
    with tempfile.TemporaryDirectory() as scratch:
        whole, merged = Path(scratch, "whole"), Path(scratch, "merged")
        subprocess.run([program, "run", corpus, *options, "--out", whole], check=True,
                       capture_output=True)
        with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                killed = []

                def one_is_killed(out):
                    if not killed:
                        busy = [w for w, tasks in client.processing().items() if tasks]
                        address = (busy or list(client.scheduler_info()["workers"]))[0]
                        [pid] = client.run(os.getpid, workers=[address]).values()
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

                example.run(client, corpus, merged, parts=8, options=options, program=program,
                            finished=one_is_killed)
                assert killed, "no worker was killed"
        assert files(whole) == files(merged), set(files(whole)) ^ set(files(merged))
        _, differ, broken = filecmp.cmpfiles(whole, merged, files(whole), shallow=False)
        assert not differ and not broken, (differ, broken)
        print(f"{len(files(whole))} files of 8 parts are those of one run; "
              f"worker {killed[0]} was killed")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
