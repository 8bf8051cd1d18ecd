"""Run folders as large as one wants, whose tables are written at once."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dlion_sim.results import LINKS, METRICS, Run

EVALUATIONS = 50


def large_run(folder: Path, workers: int, iterations: int, name: str = "large") -> Run:
    """Iterations of a second each: 0.6 s of computing, and 0.4 s of waiting for the next worker; a ring of links.

    Ten workers make a micro-cloud.
    """
    folder.mkdir(parents=True)
    names = [f"cloud-{worker // 10}/{worker}" for worker in range(workers)]
    manifest = {
        "status": "completed",
        "scenario": name,
        "system": "dlion",
        "seed": 1,
        "workers": names,
        "clouds": [each.rpartition("/")[0] for each in names],
        "partition": np.full((workers, 10), 6).tolist(),
        "versions": {"python": "3"},
    }
    summary = {
        "seed": 1,
        "status": "completed",
        "stopped_by": "duration",
        "virtual_seconds": float(iterations),
        "wall_seconds": 1.0,
        "bytes_sent": workers * EVALUATIONS * 1000,
        "iterations": {"mean": float(iterations)},
        "accuracy": {"mean": 0.9, "std": 0.0},
        "time_to_accuracy": {"0.9": float(iterations)},
        "diverged": [],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "scenario.yaml").write_text(f"name: {name}\n")
    of_worker = np.tile(np.arange(workers, dtype=np.int32), iterations)
    of_time = np.repeat(np.arange(1.0, iterations + 1), workers)
    every = np.linspace(0, iterations, EVALUATIONS + 1)
    evaluated = np.repeat(every, workers), np.tile(np.arange(workers, dtype=np.int32), len(every))
    with (folder / "metrics.parquet").open("wb") as file, pq.ParquetWriter(file, METRICS.schema) as writer:
        writer.write_table(_iterations(of_time, of_worker, workers))
        writer.write_table(_evaluations(*evaluated, iterations))
    times = np.repeat(every[1:], workers)
    senders = np.tile(np.arange(workers, dtype=np.int32), EVALUATIONS)
    columns = {
        "virtual_time": times,
        "sender": senders,
        "receiver": (senders + 1) % workers,
        "bytes": np.full(len(times), 1000),
        "messages": np.ones(len(times), dtype=np.int32),
        "gradients": np.ones(len(times), dtype=np.int32),
        "n_percent": 50 + 50 * np.sin(times),
    }
    pq.write_table(_table(columns, LINKS.schema), folder / "links.parquet")
    return Run.open(folder)


def _iterations(times: np.ndarray, workers: np.ndarray, count: int) -> pa.Table:
    columns = {
        "virtual_time": times,
        "wall_time": times,
        "worker": workers,
        "kind": _word("iteration", len(times)),
        "iteration": times.astype(np.int64),
        "loss": np.exp(-times / times.max()),
        "batch_size": (8 + workers % 7).astype(np.int32),
        "staleness": np.abs(np.sin(times + workers)),
        "compute_seconds": np.full(len(times), 0.6),
        "wait_seconds": np.full(len(times), 0.4),
        "waited_for": ((workers + 1) % count).astype(np.int32),
        "wait_reason": _word("contribution", len(times)),
    }
    return _table(columns, METRICS.schema)


def _evaluations(times: np.ndarray, workers: np.ndarray, iterations: int) -> pa.Table:
    columns = {
        "virtual_time": times,
        "wall_time": times,
        "worker": workers,
        "kind": _word("evaluation", len(times)),
        "iteration": times.astype(np.int64),
        "loss": np.ones(len(times)),
        "accuracy": 0.9 * times / iterations,
    }
    return _table(columns, METRICS.schema)


def _word(word: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([word]))


def _table(columns: dict, schema: pa.Schema) -> pa.Table:
    rows = len(columns["virtual_time"])
    arrays = [pa.array(columns.get(field.name, pa.nulls(rows, field.type)), field.type) for field in schema]
    return pa.table(arrays, schema=schema)
