"""Runs that are interrupted at any event, or killed at any moment, and resumed."""

import json
import multiprocessing
import random
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml
from llvmlite.binding import get_host_cpu_features

from dlion_sim.errors import InputError
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.results import WALL_CLOCK_COLUMNS, Run, RunWriter, environment
from dlion_sim.results.run_folder import CHECKPOINT, MANIFEST, SCENARIO, holds_run
from dlion_sim.scenario import load
from dlion_sim.simulation import resume, simulate
from tests.simulation.scenarios import digits

CHANGING = {
    "clouds": [
        {
            "name": "east",
            "workers": [
                {
                    "count": 2,
                    "compute": {"cores": {"steps": {"0 s": 24, "1.2 s": 8}, "repeat": "1.7 s"}, "noise": 0.1},
                    "nic": {"steps": {"0 s": "50 Mbps", "0.7 s": "0 Mbps", "0.8 s": "30 Mbps"}, "repeat": "1.1 s"},
                }
            ],
        },
        {"name": "west", "workers": [{"compute": {"cores": 4, "noise": 0.1}, "nic": "20 Mbps"}]},
    ],
    "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"},
}
"""Cores and links that change repeatedly, and random computing times."""


GIVEN: dict[str, dict[str, Any]] = {
    "dlion": {"batching": {"profile_repeats": 2}},
    "streaming_diloco": {"exchange": {"period": 4, "delay": 1}},
    "decoupled_diloco": {"exchange": {"period": 4, "delay": 1}},
    "fedavg": {"exchange": {"participation": 0.6, "epochs": 0.02}},
    "halos": {"exchange": {"period": 2, "region_updates": 2}},
    **{name: {"exchange": {"period": 3}} for name in ("async_local_sgd", "diloco", "local_sgd", "moshpit", "noloco")},
}
"""What systems need for several exchanges in so short a run."""


def scenario(system: str, duration: str = "4 s", *overrides: str):
    """A run in which all state matters: momentum, random streams, changes, messages under way."""
    given = {"name": system, **GIVEN.get(system, {})}
    momentum = "workload.optimizer={kind: sgd, learning_rate: 0.05, momentum: 0.9}"
    return digits(
        momentum, "workload.evaluate_every=0.3 s", *overrides, cluster=CHANGING, system=given, duration=duration
    )


def contents(folder: Path) -> dict[Path, bytes | None]:
    """The content of a folder, byte for byte; None for its folders."""
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def refusal(folder: Path, match: str) -> InputError:
    """The error of `resume`, which has not changed the folder."""
    before = contents(folder)
    with pytest.raises(InputError, match=match) as refused:
        resume(folder)
    assert contents(folder) == before
    return refused.value


WALL_CLOCK_FACTS = ("wall_seconds", "evaluation_share", "samples_per_wall_second")


def check_same(one: Run, other: Run) -> None:
    """The measurements are equal to the bit."""
    metrics = [run.metrics().drop(columns=list(WALL_CLOCK_COLUMNS)) for run in (one, other)]
    pd.testing.assert_frame_equal(*metrics, check_exact=True)
    pd.testing.assert_frame_equal(one.links(), other.links(), check_exact=True)
    pd.testing.assert_frame_equal(one.transfers(), other.transfers(), check_exact=True)
    pd.testing.assert_frame_equal(one.classes(), other.classes(), check_exact=True)
    ends = [{key: value for key, value in run.summary.items() if key not in WALL_CLOCK_FACTS} for run in (one, other)]
    assert ends[0] == ends[1]


class After:
    """Interrupts a run after so many events."""

    def __init__(self, events: int) -> None:
        self.left = events

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_a_run_interrupted_repeatedly_has_the_same_result(tmp_path, system):
    whole = simulate(scenario(system, "2.5 s"), tmp_path / "whole")
    events = random.Random(system)
    run = simulate(scenario(system, "2.5 s"), tmp_path / "parts", interrupted=After(events.randrange(30)))
    ends = []
    while run.manifest["status"] == "interrupted":
        assert run.summary["stopped_by"] == "interrupt"
        ends.append(run.summary["virtual_seconds"])
        run = resume(tmp_path / "parts", interrupted=After(events.randrange(1, 150)))
    assert len(ends) >= 2
    assert run.manifest["status"] == "completed"
    assert run.manifest["resumed_at"] == ends
    check_same(run, whole)
    assert not (run.folder / CHECKPOINT).exists()


@pytest.mark.parametrize("network", ["", "network={model: packets}"])
def test_a_run_pauses_at_the_given_time_and_has_the_same_result(tmp_path, network):
    given = scenario("dlion", "2.5 s", "workload.evaluate_every=0.5 s", *([network] if network else []))
    whole = simulate(given, tmp_path / "whole")
    run = simulate(given, tmp_path / "parts", until=0.5)
    for until in (0.7, 1.9, 1.0):  # The last one has passed already.
        seen = run.summary["virtual_seconds"]
        assert (run.manifest["status"], run.summary["stopped_by"]) == ("interrupted", "pause")
        assert run.metrics()["virtual_time"].max() <= seen
        run = resume(tmp_path / "parts", until=until)
        assert run.summary["virtual_seconds"] == pytest.approx(max(until, seen))
    times = sorted({*run.evaluations()["virtual_time"]})
    assert times == [0, 0.5, 1, 1.5]
    run = resume(tmp_path / "parts", until=3)
    assert (run.manifest["status"], run.summary["stopped_by"]) == ("completed", "duration")
    check_same(run, whole)


OTHERS = {
    "top_k": ["system.exchange=top_k"],
    "adaptive_top_k": ["system.exchange=adaptive_top_k"],
    "random_k": ["system.exchange=random_k"],
    "dgc": ["system.exchange=dgc"],
    "weight_exchange": ["system.knowledge_transfer=weight_exchange"],
    "adam": ["workload.optimizer={kind: adamw, learning_rate: 0.01, schedule: {kind: cosine, steps: 50}}"],
    "clipped": ["workload.optimizer={kind: adamw, learning_rate: 0.01, clip_norm: 0.3}"],
    "charged": ["workload.cost_as={parameters: 20 k}"],
    "fed": ["workload.input={prep_rate: 400, disk: 10 MB/s, sample_bytes: 20 kB, cache: 0.5}"],
    "all of a stream": ["workload.stream={arrivals: 100/s, initial: 40}"],
    "a stream's window": [
        "workload.stream={arrivals: 100/s, initial: 40, keep: {window: 60}}",
        "workload.stream.drift=[{kind: late_class, class: 2, from: 0.4 s}]",
    ],
    "a stream's reservoir": [
        "workload.stream={arrivals: 100/s, initial: 40, keep: {reservoir: 60}}",
        "workload.stream.drift=[{kind: rotation, to: 1 s, by: 30}]",
    ],
    "step": ["workload.optimizer={kind: sgd, learning_rate: 0.1, warmup: 3, schedule: {kind: step, every: 5}}"],
    "a ring of halves": ["system={name: diloco, exchange: {period: 3, route: ring, precision: bf16}}"],
    "halves": ["system={name: local_sgd, exchange: {period: 3, precision: fp16}}"],
}
"""Settings that are no system's defaults."""


@pytest.mark.parametrize("other", OTHERS)
def test_other_settings_resume_to_the_same_result(tmp_path, other):
    given = scenario("baseline", "0.8 s", *OTHERS[other])
    whole = simulate(given, tmp_path / "whole")
    assert simulate(given, tmp_path / "parts", interrupted=After(35)).manifest["status"] == "interrupted"
    check_same(resume(tmp_path / "parts"), whole)


@pytest.mark.parametrize(
    "network",
    [
        ["network={tcp: lv08}"],
        ["network={tcp: {kind: window, initial_window: 2}}", "cluster.wan.loss=0.01"],
        ["network={model: {kind: flows, queue: 4 packets}}"],
    ],
    ids=["lv08", "windows", "queues"],
)
def test_connections_resume_to_the_same_result(tmp_path, network):
    given = scenario("dlion", "1 s", *network)
    whole = simulate(given, tmp_path / "whole")
    plain = simulate(scenario("dlion", "1 s"), tmp_path / "plain")
    assert whole.transfers()["end"].tolist() != plain.transfers()["end"].tolist()
    run = simulate(given, tmp_path / "parts", interrupted=After(40))
    while run.manifest["status"] == "interrupted":
        run = resume(tmp_path / "parts", interrupted=After(31))
    assert len(run.manifest["resumed_at"]) >= 2
    check_same(run, whole)


def test_a_resumed_run_is_evaluated_on_the_same_samples(tmp_path):
    held_out = scenario("dlion", "2 s", "workload.validation=0.2")
    whole = simulate(held_out, tmp_path / "whole")
    assert simulate(held_out, tmp_path / "parts", interrupted=After(60)).manifest["status"] == "interrupted"
    check_same(resume(tmp_path / "parts"), whole)
    assert whole.summary["evaluated_on"] == "validation"


def run_or_resume(folder: Path) -> None:
    """The process that is killed."""
    torch.set_num_threads(1)
    if (folder / CHECKPOINT).exists():
        resume(folder, checkpoint_every=0.05)
    else:
        simulate(scenario("dlion"), folder, force=True, checkpoint_every=0.05)


def saved_at(folder: Path) -> int | None:
    """When the last checkpoint was saved (ns)."""
    file = folder / CHECKPOINT
    return file.stat().st_mtime_ns if file.exists() else None


def test_a_run_killed_repeatedly_has_the_same_result(tmp_path):
    whole = simulate(scenario("dlion"), tmp_path / "whole")
    folder, moments = tmp_path / "run", random.Random(1)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    kills = 0
    # If the last kill hits a run that is completed, or has no checkpoint yet, there is nothing to resume.
    while kills < 4 or not (folder / CHECKPOINT).exists():
        process = processes.Process(target=run_or_resume, args=[folder])
        process.start()
        before = saved_at(folder)
        while process.is_alive() and saved_at(folder) == before:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.1))
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        kills += process.exitcode != 0
        if holds_run(folder) and (run := Run.open(folder)).manifest["status"] == "completed":
            check_same(run, whole)
            shutil.rmtree(folder)
    run = resume(folder)
    assert run.manifest["resumed_at"]
    check_same(run, whole)


def test_a_run_killed_after_its_last_evaluation_has_its_rows_once(tmp_path, monkeypatch):
    given = scenario("dlion", "1 s", "workload.evaluation_samples=100")
    whole = simulate(given, tmp_path / "whole")

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dlion_sim.simulation.checkpointing.checkpoint._MOST_TIME", float("inf"))
    with monkeypatch.context() as patched:
        patched.setattr(RunWriter, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            simulate(given, tmp_path / "killed", checkpoint_every=0.0)
    check_same(resume(tmp_path / "killed"), whole)


def test_without_checkpoints_nothing_is_saved(tmp_path):
    run = simulate(scenario("ako", "1 s"), tmp_path / "run", checkpoint_every=None, interrupted=After(50))
    assert not (run.folder / CHECKPOINT).exists()
    again = f"`run` {run.folder / 'scenario.yaml'} begins anew"
    with pytest.raises(InputError, match="has no checkpoint to resume from.*" + re.escape(again)):
        resume(run.folder)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Run:
    return simulate(scenario("ako", "2 s"), tmp_path_factory.mktemp("early") / "run", interrupted=After(80))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Run:
    """The same run without an interruption."""
    return simulate(scenario("ako", "2 s"), tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def ended_early(interrupted, tmp_path) -> Run:
    return Run.open(shutil.copytree(interrupted.folder, tmp_path / "run"))


@pytest.mark.parametrize("kept", [0, 100, 20_000])
def test_a_damaged_checkpoint_is_refused(ended_early, kept):
    file = ended_early.folder / CHECKPOINT
    file.write_bytes(file.read_bytes()[:kept])
    assert refusal(ended_early.folder, "is no checkpoint that can be read").file == file


@pytest.mark.parametrize(("of", "value"), [("torch", "9.9"), ("dlion_sim_source", "0123456789abcdef")])
def test_a_checkpoint_of_other_software_is_refused(ended_early, monkeypatch, of, value):
    versions = {**environment()["versions"], of: value}
    monkeypatch.setattr("dlion_sim.simulation.checkpointing.checkpoint.environment", lambda: {"versions": versions})
    refusal(ended_early.folder, f"was saved with {of} .*, and here is {re.escape(value)}")


@pytest.fixture
def flushed_denormals():
    torch.set_flush_denormal(True)
    yield
    torch.set_flush_denormal(False)


def test_a_checkpoint_of_other_arithmetic_is_refused_with_what_differs(ended_early, monkeypatch, flushed_denormals):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    words = "was saved with denormals kept, and here is flushed; with ONEDNN_MAX_CPU_ISA absent, and here is SSE41;"
    assert refusal(ended_early.folder, words).file == ended_early.folder / CHECKPOINT


def test_a_checkpoint_of_another_processor_is_refused(ended_early, monkeypatch):
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "VSX")
    other = {"avx512f": not get_host_cpu_features().get("avx512f")}
    monkeypatch.setattr("dlion_sim.learning.arithmetic.get_host_cpu_features", lambda: other)
    refusal(
        ended_early.folder,
        r"was saved with cpu_capability .*, and here is VSX; with vector_lanes (8|16), and here is (8|16);",
    )


def test_a_run_resumes_with_any_number_of_threads(ended_early, whole):
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 2)
    try:
        run = resume(ended_early.folder)
    finally:
        torch.set_num_threads(threads)
    assert run.manifest["threads"] == threads
    check_same(run, whole)


@pytest.mark.parametrize(
    ("path", "was", "now"),
    [
        ("seed", 1, 2),
        ("duration", "2 s", "3 s"),
        ("workload.optimizer.learning_rate", 0.05, 0.1),
        ("cluster.clouds.0.workers.0.count", 2, 3),
        ("target_accuracy", "absent", 0.5),
    ],
)
def test_an_edited_scenario_is_refused(ended_early, path, was, now):
    file = ended_early.folder / SCENARIO
    edited = data = yaml.safe_load(file.read_text())
    *above, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in above:
        data = data[key]
    data[last] = now
    file.write_text(yaml.safe_dump(edited))
    words = re.escape(f"{path} was {was} and is {now}")
    assert refusal(ended_early.folder, words).file == ended_early.folder / CHECKPOINT


def test_a_manifest_of_other_workers_is_refused(ended_early):
    file = ended_early.folder / MANIFEST
    file.write_text(json.dumps({**json.loads(file.read_text()), "workers": ["a"]}))
    refusal(ended_early.folder, "workers: has other workers")


def test_the_checkpoint_of_another_run_is_refused(ended_early, tmp_path):
    other = simulate(scenario("ako", "2 s", "seed=5"), tmp_path / "other", interrupted=After(80))
    shutil.copy(other.folder / CHECKPOINT, ended_early.folder / CHECKPOINT)
    refusal(ended_early.folder, "was saved for another scenario: seed was 5 and is 1;")


def test_a_scenario_with_the_same_values_in_another_form_resumes(ended_early, whole):
    file = ended_early.folder / SCENARIO
    data = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**data, "duration": "2000 ms", "system": "ako"}, sort_keys=True))
    check_same(resume(ended_early.folder), whole)


def test_a_computing_time_by_the_model_is_the_same_when_run_again_and_when_resumed(tmp_path):
    given = scenario("ako", "1 s", "workload.compute_time={alpha: 10 ms}")
    whole = simulate(given, tmp_path / "whole")
    resolved = load(whole.folder / SCENARIO)
    assert resolved.workload.compute_time.beta == whole.manifest["core_seconds_per_sample"]
    check_same(simulate(resolved, tmp_path / "again"), whole)
    assert (tmp_path / "again" / SCENARIO).read_text() == (whole.folder / SCENARIO).read_text()
    assert simulate(given, tmp_path / "parts", interrupted=After(60)).manifest["status"] == "interrupted"
    check_same(resume(tmp_path / "parts"), whole)


def test_a_completed_run_is_not_resumed(whole):
    refusal(whole.folder, "is complete")


def test_rows_after_the_checkpoint_are_dropped(ended_early, tmp_path):
    shutil.copytree(ended_early.folder, tmp_path / "other")
    run = resume(tmp_path / "other", interrupted=After(40))
    shutil.copy(ended_early.folder / CHECKPOINT, run.folder / CHECKPOINT)  # As if killed before it saved again.
    assert len(run.metrics()) > len(ended_early.metrics())
    check_same(resume(run.folder), resume(ended_early.folder))


def test_a_folder_that_lost_rows_is_refused(ended_early):
    (ended_early.folder / "metrics.parquet").unlink()
    refusal(ended_early.folder, r"metrics\S*: has no part that ends with row")


def test_a_run_in_progress_is_not_resumed(tmp_path):
    """It would write every row twice."""
    refusals = []

    def resume_meanwhile(progress):
        with pytest.raises(InputError, match="being written by a run that still goes on") as refused:
            resume(tmp_path / "run")
        refusals.append(refused.value)

    run = simulate(scenario("ako", "1 s"), tmp_path / "run", checkpoint_every=0.01, observe=resume_meanwhile)
    assert refusals[0].file == run.folder
    check_same(run, simulate(scenario("ako", "1 s"), tmp_path / "alone"))
