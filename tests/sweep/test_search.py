"""Searches: trials, results, resumption, bad input."""

from pathlib import Path

import pytest
import yaml

from dlion_sim.errors import InputError
from dlion_sim.results import MetricsRow, Run, RunWriter
from dlion_sim.scenario import from_data
from dlion_sim.sweep import Ended, Search, load_search, load_sweep, run_all
from dlion_sim.sweep.study import Study
from dlion_sim.yaml_text import read_yaml
from tests.sweep.scenarios import write_sweep

RATE, FLOOR = "workload.optimizer.learning_rate", "system.exchange.n_min"
OVER = {RATE: {"log_uniform": {"from": 0.01, "to": 1}}, FLOOR: {"uniform": {"from": 0.1, "to": 5}}}


class MadeUpRuns:
    """An executor whose runs end immediately; the nearer the learning rate is to 0.1, the higher the accuracy.

    `ends` has other statuses than "completed" by name; "diverged" is a completed run that diverged.
    """

    def __init__(self, most=1, ends=()):
        self._most = most
        self._ends = dict(ends)
        self._running = []
        self.done = []

    @property
    def free(self):
        return self._most - len(self._running)

    def start(self, job):
        self._running.append(job)
        self.done.append(job.name)

    def events(self, timeout):
        job = self._running.pop()  # Trials end out of order.
        ends = self._ends.get(job.name, "completed")
        if ends in ("completed", "diverged"):
            make_up(job, [0] if ends == "diverged" else [])
            return [Ended(job.name, "completed")]
        return [Ended(job.name, ends, "no more memory" if ends == "failed" else "")]

    def interrupt(self):
        pass


def make_up(job, diverged=()):
    scenario = from_data(read_yaml(job.scenario))
    about = {"scenario": scenario.name, "system": scenario.system.name, "seed": scenario.seed}
    accuracy = 0.9 - abs(scenario.workload.optimizer.learning_rate - 0.1) / 2 - scenario.seed / 100
    writer = RunWriter.create(Path(job.folder), scenario_yaml=job.scenario, manifest={**about, **job.manifest})
    writer.append(MetricsRow(1.0, 1.0, 0, "evaluation", 1, 1 - accuracy, accuracy))
    writer.finish({"status": "completed", "diverged": list(diverged)})


def searching(folder, *overrides, axes=None, trials=6, metric="accuracy", over=OVER, **keys) -> Search:
    search = {"trials": trials, "metric": metric, "over": over, **keys}
    file = write_sweep(folder, "workload.validation=0.1", *overrides, axes=axes or {"seed": [1]}, search=search)
    (folder / "out").mkdir(exist_ok=True)
    return Search(load_search(file), load_sweep(file), folder / "out")


def do(search, executor=None, most_runs=None) -> MadeUpRuns:
    """Search, as the command does, until `most_runs` have started."""
    executor = executor or MadeUpRuns()
    for event in run_all(search.jobs("cpu"), executor, lambda: False):
        if isinstance(event, Ended):
            search.report(event)
        elif most_runs and len(executor.done) > most_runs:
            break
    return executor


def outcome(search):
    return [(trial.labels, trial.state, trial.value) for trial in search.trials]


def test_a_trial_is_the_mean_over_all_points(tmp_path):
    search = searching(tmp_path, axes={"seed": [1, 3]}, trials=2)
    assert do(search).done == ["trial-0000-seed1", "trial-0000-seed3", "trial-0001-seed1", "trial-0001-seed3"]
    for trial in search.trials:
        rate = float(trial.labels[RATE])
        assert trial.value == pytest.approx(0.9 - abs(rate - 0.1) / 2 - 0.02)
        for seed in (1, 3):
            run = Run.open(tmp_path / f"out/trial-{trial.number:04d}-seed{seed}")
            assert run.scenario["workload"]["optimizer"]["learning_rate"] == rate
            assert run.point == {"trial": str(trial.number), **trial.labels, "base": "base", "seed": str(seed)}
    assert search.remaining == 0


@pytest.mark.parametrize(("metric", "best"), [("accuracy", max), ("loss", min)])
def test_the_best_follow_the_metrics_direction(tmp_path, metric, best):
    search = searching(tmp_path, metric=metric)
    do(search)
    values = [value for value, _ in search.best]
    assert values[0] == best(values)
    assert values == sorted(values, reverse=best is max)
    assert all(value == trial.value for value, trial in search.best)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A complete search, beyond the ten random trials with which TPE starts."""
    search = searching(tmp_path_factory.mktemp("whole"), axes={"seed": [1, 2]}, trials=12)
    do(search)
    return outcome(search)


@pytest.mark.parametrize("kill", [1, 4, 21])
def test_a_killed_search_resumes_to_the_same_result(tmp_path, whole, kill):
    first = do(searching(tmp_path, axes={"seed": [1, 2]}, trials=12), most_runs=kill)
    again = searching(tmp_path, axes={"seed": [1, 2]}, trials=12)
    second = do(again)
    assert outcome(again) == whole
    # Only the run in progress is repeated.
    assert first.done[:-1] + second.done == [f"trial-{n:04d}-seed{seed}" for n in range(12) for seed in (1, 2)]
    assert again.remaining == 0


def test_a_trial_with_all_runs_done_is_not_repeated(tmp_path):
    search = searching(tmp_path, trials=1)
    make_up(next(search.jobs("cpu")))
    again = searching(tmp_path, trials=2)
    assert do(again).done == ["trial-0001"]
    assert [trial.state for trial in again.trials] == ["done", "done"]


def test_the_number_of_trials_can_be_raised(tmp_path, whole):
    do(searching(tmp_path, axes={"seed": [1, 2]}, trials=3))
    more = searching(tmp_path, axes={"seed": [1, 2]}, trials=5)
    assert (more.remaining, len(do(more).done)) == (2, 4)
    assert outcome(more) == whole[:5]


def test_parallel_trials_try_different_values(tmp_path):
    search = searching(tmp_path, trials=6)
    executor = MadeUpRuns(3)
    started, most = 0, 0
    for event in run_all(search.jobs("cpu"), executor, lambda: False):
        if isinstance(event, Ended):
            search.report(event)
        started += 1 if not isinstance(event, Ended) else -1
        most = max(most, started)
        assert sum(trial.state == "under way" for trial in search.trials) <= 3
    assert most == 3
    assert [trial.state for trial in search.trials] == ["done"] * 6
    assert len({trial.labels[RATE] for trial in search.trials}) == 6


def test_failed_and_diverged_trials_have_no_value(tmp_path):
    ends = {"trial-0001-seed1": "failed", "trial-0003-seed2": "diverged"}
    search = searching(tmp_path, axes={"seed": [1, 2]}, trials=5)
    executor = do(search, MadeUpRuns(ends=ends))
    assert "trial-0001-seed2" not in executor.done  # The trial has failed already.
    assert [trial.state for trial in search.trials] == ["done", "failed", "done", "failed", "done"]
    assert {trial.number for _, trial in search.best} == {0, 2, 4}
    assert search.failures == {"trial-0001-seed1": "no more memory", "trial-0003-seed2": "diverged: workers [0]"}
    assert do(searching(tmp_path, axes={"seed": [1, 2]}, trials=5)).done == []


def test_other_runs_of_a_failed_trial_change_nothing(tmp_path):
    search = searching(tmp_path, axes={"seed": [1, 2]}, trials=1)
    do(search, MadeUpRuns(2, {"trial-0000-seed2": "failed"}))  # which ends first
    assert outcome(search) == [(search.trials[0].labels, "failed", None)]


def test_interrupted_trials_continue(tmp_path):
    search = searching(tmp_path, trials=1)
    jobs = search.jobs("cpu")
    search.report(Ended(next(jobs).name, "interrupted"))
    assert next(jobs) is None
    assert search.trials[0].state == "under way"
    assert do(searching(tmp_path, trials=1)).done == ["trial-0000"]


def test_invalid_combinations_fail_only_their_trial(tmp_path):
    over = {"system.synchronization": ["asynchronous", "synchronous"], "system.exchange": ["full", "ring_allreduce"]}
    search = searching(tmp_path, over=over, trials=8)
    search.check()
    do(search)
    unfit = [trial for trial in search.trials if tuple(trial.labels.values()) == ("synchronous", "ring_allreduce")]
    assert unfit
    assert [trial for trial in search.trials if trial.state == "failed"] == unfit
    assert set(search.failures) == {trial.points[0].name for trial in unfit}
    assert all("waits for messages of each peer's" in problem for problem in search.failures.values())


def test_a_changed_search_is_refused(tmp_path):
    do(searching(tmp_path, trials=2))
    for changed, words in (
        ({"over": {RATE: {"log_uniform": {"from": 0.01, "to": 2}}}}, f"over.{RATE}.log_uniform.to was 1.0, is 2.0"),
        ({"metric": "loss"}, "metric was accuracy, is loss"),
        ({"seed": 1}, "seed was 0, is 1"),
        ({"axes": {"seed": [1, 2]}}, "points was another one"),
    ):
        with pytest.raises(InputError, match="holds trials of a search") as fault:
            searching(tmp_path, **changed)
        assert words in str(fault.value)
        assert fault.value.file == tmp_path / "out/study.db"
    with pytest.raises(InputError, match=r"than trial-0000 is now \(workload.batch_size was 16, is 8\)"):
        searching(tmp_path, "workload.batch_size=8")
    assert searching(tmp_path, trials=2).remaining == 0


@pytest.mark.parametrize(
    ("missing", "over"),
    [
        ("system", {"system": ["baseline", "dlion", "gaia"]}),
        ("duration", {"duration": ["1 s", "2 s"]}),
        ("cluster.wan.bandwidth", {"cluster.wan.bandwidth": {"uniform": {"from": 5, "to": 50, "unit": "Mbps"}}}),
    ],
)
def test_the_base_may_lack_what_is_searched(tmp_path, missing, over):
    search = {"trials": 3, "metric": "accuracy", "over": over}
    file = write_sweep(tmp_path, "workload.validation=0.1", search=search)
    base = tmp_path / "base.yaml"
    part = whole = yaml.safe_load(base.read_text())
    *above, key = missing.split(".")
    for each in above:
        part = part[each]
    del part[key]
    base.write_text(yaml.safe_dump(whole))
    for left in (3, 0):
        opened = Search(load_search(file), load_sweep(file), tmp_path)
        opened.check()
        assert opened.remaining == left
        do(opened)
        assert [trial.state for trial in opened.trials] == ["done"] * 3


def test_a_search_of_an_earlier_state_continues(tmp_path):
    """Its study has a digest of each point, by an algorithm that is no more."""
    search = searching(tmp_path, axes={"seed": [2, 1]}, trials=1)
    do(search)
    search._study._optuna.set_user_attr("points", {"seed2": "0" * 32, "seed1": "1" * 32})
    assert do(searching(tmp_path, axes={"seed": [2, 1]}, trials=2)).done == ["trial-0001-seed2", "trial-0001-seed1"]
    with pytest.raises(InputError, match=r"points was another one \(1 was seed2, is seed3\)"):
        searching(tmp_path, axes={"seed": [3, 1]}, trials=2)


def test_an_older_search_by_the_test_set_is_refused(tmp_path):
    search = searching(tmp_path, trials=1)
    former = Study(search.spec, tmp_path / "out")
    former.require("search", search.spec.model_dump(mode="json", by_alias=True, exclude={"trials"}))
    former.succeed(former.ask().number, 0.99)
    with pytest.raises(InputError, match="evaluated_on was not there, is validation") as fault:
        searching(tmp_path, trials=1)
    assert fault.value.file == tmp_path / "out/study.db"


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({}, "base.yaml: workload.validation: "),
        ({"axes": {"workload.validation": [0.1, 0]}}, "sweep.yaml: axes.workload.validation: "),
        ({"over": {"workload.validation": {"uniform": {"from": 0, "to": 0.2}}}}, "search.over.workload.validation: "),
    ],
)
@pytest.mark.parametrize("metric", ["accuracy", "loss", {"time_to_accuracy": 0.5}])
def test_a_search_without_validation_samples_is_refused(tmp_path, keys, place, metric):
    search = searching(tmp_path, "workload.validation=0", metric=metric, **keys)
    with pytest.raises(InputError) as fault:
        search.check()
    assert f"{place}a search needs validation samples" in str(fault.value)
    assert "allowed: more than 0, up to 0.5" in str(fault.value)


def test_a_search_without_trials_may_change(tmp_path):
    searching(tmp_path)
    changed = searching(tmp_path, metric="loss", trials=1)
    assert do(changed).done == ["trial-0000"]
    assert changed._study._optuna.direction.name == "MINIMIZE"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"trials": 0}, ["search.trials: must be 1 or more"]),
        (
            {"metric": "acuracy"},
            ["search.metric: 'acuracy' is not a metric; did you mean 'accuracy'?", "time_to_accuracy"],
        ),
        ({"metric": {"time_to_accuracy": 90}}, ["search.metric.time_to_accuracy: must be 1 or less"]),
        ({"sampler": "grid"}, ["search.sampler: 'grid' is unknown", "'tpe' or 'random'"]),
        ({"trial": 3}, ["search: unknown key 'trial'; did you mean 'trials'?"]),
        ({"over": {}}, ["search.over: must have 1 or more entries"]),
        ({"over": {"seed": [1, 2]}}, ["search.over.seed: 'seed' is already an axis"]),
        ({"over": {RATE: {"log_uniform": {"from": 0, "to": 1}}}}, [f"{RATE}.log_uniform.from: must be more than 0"]),
        ({"over": {RATE: {"uniform": {"from": 1, "to": 1}}}}, [f"search.over.{RATE}.uniform.to", "not above"]),
        ({"over": {RATE: {"uniform": {"from": 1}}}}, [f"search.over.{RATE}.uniform.to: is required"]),
        ({"over": {RATE: {"unifrom": {"from": 1, "to": 2}}}}, [f"search.over.{RATE}: there must be two", "{uniform:"]),
        ({"over": {RATE: [0.1]}}, [f"search.over.{RATE}: there must be two values or more"]),
    ],
)
def test_bad_input_is_one_line_with_file_and_path(tmp_path, keys, words):
    with pytest.raises(InputError) as fault:
        searching(tmp_path, **keys)
    assert str(fault.value).startswith(f"{tmp_path / 'sweep.yaml'}: ")
    assert not fault.value.further
    assert all(word in str(fault.value) for word in words), fault.value


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({FLOOR: {"uniform": {"from": 1, "to": 101}}}, [f"search.over.{FLOOR}", "100 or less"]),
        ({"system.exchange.n_mim": {"uniform": {"from": 1, "to": 2}}}, ["search.over.system.exchange.n_mim", "n_min"]),
        (
            {"workload.batch_size": {"uniform": {"from": 1, "to": 9}}},
            ["search.over.workload.batch_size", "whole number"],
        ),
        ({"cluster.wan.rtt": {"uniform": {"from": 1, "to": 2, "unit": "mm"}}}, ["search.over.cluster.wan.rtt", "mm"]),
        ({"duration.x": [1, 2]}, ["search.over.duration.x", "no 'x' to set"]),
        ({"system": ["ako", "akko"]}, ["search.over.system", "did you mean 'ako'"]),
    ],
)
def test_invalid_values_are_found_before_any_run(tmp_path, over, words):
    search = searching(tmp_path, over=over)
    with pytest.raises(InputError) as fault:
        search.check()
    for each in (fault.value, *fault.value.further):  # such as both ends of an interval
        assert all(word in str(each) for word in words), each
    assert not search.trials
