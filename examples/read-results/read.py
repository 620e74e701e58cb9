"""Results read by pandas and DuckDB: what each strategy costs and keeps, over all sessions.

    python read.py OUT

`results.sqlite` has the tables of the CSV files with exact numbers, NULL for what is unknown. Both
programs read it, and the CSV files, without loading the whole. Where DuckDB may fetch its extension for SQLite, `ATTACH 'results.sqlite' (TYPE sqlite)`
reads the same tables in place.
"""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd

BY_STRATEGY = """
    SELECT strategy, count(*) AS sessions, sum(cost_usd) AS usd, avg(recall_pct) AS kept_pct
    FROM {table} WHERE status = 'completed' GROUP BY strategy ORDER BY usd, strategy
"""


def by_pandas(out):
    with closing(sqlite3.connect(f"file:{out}/results.sqlite?mode=ro", uri=True)) as db:
        return pd.read_sql(BY_STRATEGY.format(table="summary"), db)


def by_duckdb(out):
    table = f"read_csv('{out}/summary.csv', nullstr='n/a', sample_size=-1)"
    return duckdb.sql(BY_STRATEGY.format(table=table)).df()


def largest_requests(out, most=5):
    """A table of requests may be larger than memory: rows arrive in portions."""
    with closing(sqlite3.connect(f"file:{out}/results.sqlite?mode=ro", uri=True)) as db:
        sql = "SELECT scenario, strategy, seq, context_tokens FROM requests"
        found = pd.DataFrame()
        for portion in pd.read_sql(sql, db, chunksize=100_000):
            found = pd.concat([found, portion]).nlargest(most, "context_tokens")
        return found


def settings(out):
    """results.json has what no table has."""
    runs = json.loads((out / "results.json").read_text())["runs"]
    return {run["strategy"]["label"]: run["strategy"]["settings"] for run in runs}


def main(out):
    ours, theirs = by_pandas(out), by_duckdb(out)
    print(ours.to_string(index=False))
    print(largest_requests(out).to_string(index=False))
    for strategy, values in settings(out).items():
        print(strategy, values)
    # CSV files round to six decimals.
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, rtol=0, atol=1e-4)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
