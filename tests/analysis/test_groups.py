"""Groups of runs that differ only in their seed."""

import pytest

from dlion_sim.analysis import group_runs, label_text, metric_name, varying, with_own_optimizers
from dlion_sim.analysis.groups import note
from tests.made_up import made_up_run


def test_systems_are_groups_over_seeds(tmp_path):
    runs = [
        made_up_run(tmp_path / f"{system}-{seed}", system=system, seed=seed)
        for seed in (0, 1)
        for system in ("ako", "dlion")
    ]
    groups = group_runs(runs)
    assert [group.labels["system"] for group in groups] == ["ako", "dlion"]
    assert [[run.manifest["seed"] for run in group.runs] for group in groups] == [[0, 1], [0, 1]]
    assert varying(groups) == ["system"]


def test_the_values_of_a_sweep_distinguish_groups(tmp_path):
    points = [
        {"base": "made-up", "cluster.wan.bandwidth": bandwidth, "seed": str(seed)}
        for bandwidth in ("5 Mbps", "20 Mbps")
        for seed in (0, 1)
    ]
    runs = [
        made_up_run(tmp_path / str(number), seed=number % 2, point=point, extra=point["cluster.wan.bandwidth"])
        for number, point in enumerate(points)
    ]
    groups = group_runs(runs)
    assert varying(groups) == ["cluster.wan.bandwidth"]
    assert [group.named(varying(groups)) for group in groups] == ["bandwidth 5 Mbps", "bandwidth 20 Mbps"]


def test_transports_distinguish_groups(tmp_path):
    runs = [made_up_run(tmp_path / name, transport=name) for name in ("reliable", "dlcp")]
    old = made_up_run(tmp_path / "old")
    del old.manifest["transport"]  # as of runs from before there was another
    groups = group_runs([*runs, old])
    assert varying(groups) == ["transport"]
    assert [(group.named(varying(groups)), len(group.runs)) for group in groups] == [("reliable", 2), ("dlcp", 1)]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (["batch_size: 8", "batch_size: 16"], ["batch size 8", "batch size 16"]),
        (["a: {b: 1}\nc: x", "a: {b: 1}\nc: y", "a: {b: 2}\nc: y"], ["b 1, c x", "b 1, c y", "b 2, c y"]),
        # Not in a few plain values.
        (["a: [1]", "a: [2]"], ["run 0", "run 1"]),
        (["a: 1", "b: 1"], ["run 0", "run 1"]),
        (["a: 1\nb: 1\nc: 1", "a: 2\nb: 2\nc: 2"], ["run 0", "run 1"]),
        (["description: x", "description: y"], ["run 0", "run 1"]),
    ],
)
def test_differing_settings_or_folders_name_groups(tmp_path, settings, names):
    runs = [made_up_run(tmp_path / f"run {number}", extra=text) for number, text in enumerate(settings)]
    assert [group.labels.get("run") for group in group_runs(runs)] == names


def test_settings_distinguish_groups_over_seeds(tmp_path):
    runs = [
        made_up_run(tmp_path / f"{size}-{seed}", extra=f"size: {size}", seed=seed)
        for size in (8, 16)
        for seed in (0, 1)
    ]
    groups = group_runs([*runs, made_up_run(tmp_path / "other", system="ako")])
    assert [group.named(varying(groups)) for group in groups] == ["dlion, size 8", "dlion, size 16", "ako"]
    assert [len(group.runs) for group in groups] == [2, 2, 1]


def test_the_folder_of_own_code_does_not_distinguish_groups(tmp_path):
    runs = [made_up_run(tmp_path / each, extra=f"modules: /{each}\n", seed=seed) for seed, each in enumerate("ab")]
    assert len(group_runs(runs)) == 1


def test_real_and_simulated_runs_are_distinguished(tmp_path):
    groups = group_runs([made_up_run(tmp_path / "a"), made_up_run(tmp_path / "b", way="live", seed=1)])
    assert [group.named(varying(groups)) for group in groups] == ["", "live"]


def test_evaluation_sets_distinguish_groups(tmp_path):
    tuned = made_up_run(tmp_path / "a", extra="validation: 0.1\n", evaluated_on="validation")
    groups = group_runs([tuned, made_up_run(tmp_path / "b", extra="validation: 0.0\n")])
    assert varying(groups) == ["evaluated_on"]
    assert [group.named(varying(groups)) for group in groups] == ["evaluated on validation", "evaluated on test"]
    assert [metric_name([group]) for group in groups] == ["validation accuracy", "test accuracy"]
    assert metric_name(groups) == "accuracy"


def test_interrupted_runs_are_not_completed(tmp_path):
    runs = [made_up_run(tmp_path / "a"), made_up_run(tmp_path / "b", seed=1, status="interrupted")]
    (group,) = group_runs(runs)
    assert group.completed == (runs[0],)


def test_labels_do_not_repeat_the_values_of_axes(tmp_path):
    replaced = {"exchange.n": "10", "batching.weights": "share"}
    points = [{"system.exchange.n": "10"}, {"system.exchange.n": "20"}]
    runs = [
        made_up_run(
            tmp_path / str(number), point=point, replaced={**replaced, "exchange.n": point["system.exchange.n"]}
        )
        for number, point in enumerate(points)
    ]
    assert [group.labels["system"] for group in group_runs(runs)] == ["dlion, weights share"] * 2
    alone = made_up_run(tmp_path / "alone", replaced=replaced)
    assert group_runs([alone])[0].labels["system"] == "dlion, n 10, weights share"
    # What the sweep calls it stays, where only parameters differ.
    tuned = made_up_run(tmp_path / "tuned", point={"system": "dlion"}, replaced=replaced)
    assert group_runs([tuned])[0].labels["system"] == "dlion"


def test_labels_are_written_as_text():
    assert label_text("system", "dlion") == "dlion"
    assert label_text("workload.optimizer.learning_rate", "0.1") == "learning rate 0.1"


def test_incomplete_runs_are_noted(tmp_path):
    ended = [made_up_run(tmp_path / f"{seed}", seed=seed, status="interrupted") for seed in (0, 1)]
    assert note(group_runs(ended)) == "interrupted"
    assert note(group_runs([*ended, made_up_run(tmp_path / "done", seed=2)])) == "in part interrupted"
    assert note(group_runs([made_up_run(tmp_path / "failed", status="failed", exchanging=False)])) == (
        "no exchange, failed"
    )


def test_an_optimizer_of_each_systems_own_is_no_environment(tmp_path):
    rate = "workload.optimizer.learning_rate"
    runs = [
        made_up_run(
            tmp_path / f"{system}-{churn}",
            system=system,
            point={rate: value, "availability": churn},
            extra=f"availability: {churn}\n",
        )
        for system, value in (("baseline", "0.1"), ("dlion", "0.01"))
        for churn in ("never", "1 h")
    ]
    groups = with_own_optimizers(group_runs(runs))
    environments = [dict(group.environment) for group in groups]
    assert [each["availability"] for each in environments] == ["never", "never", "1 h", "1 h"]
    assert not any("learning_rate" in key for each in environments for key in each)
    assert [group.labels["own.optimizer.learning_rate"] for group in groups] == ["0.1", "0.01"] * 2
    both = [
        made_up_run(tmp_path / f"other{value}", system="dlion", point={rate: value}, extra=f"rate: {value}\n")
        for value in ("0.1", "0.01")
    ]
    assert [group.labels[rate] for group in with_own_optimizers(group_runs(both))] == ["0.01", "0.1"]
