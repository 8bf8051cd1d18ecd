"""The YAML of sweeps: points, and bad input."""

import pytest

from dlion_sim.errors import InputError
from dlion_sim.sweep import check, equal_points, load_sweep
from tests.pages import ROOT, blocks
from tests.sweep.scenarios import write_sweep

BANDWIDTH = "cluster.wan.bandwidth"


def names(folder, **keys):
    return [point.name for point in load_sweep(write_sweep(folder, **keys))]


def test_points_are_all_combinations_and_the_last_axis_varies_fastest(tmp_path):
    points = load_sweep(write_sweep(tmp_path, axes={"system": ["ako", "dlion"], "seed": [1, 2]}))
    assert [point.name for point in points] == ["ako-seed1", "ako-seed2", "dlion-seed1", "dlion-seed2"]
    assert [(p.scenario().system.name, p.scenario().seed) for p in points[1:3]] == [("ako", 2), ("dlion", 1)]
    assert points[0].labels == {"base": "base", "system": "ako", "seed": "1"}


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ({"range": {"from": 1, "to": 3}}, [1, 2, 3]),
        ({"range": {"from": 0.1, "to": 0.4, "step": 0.1}}, [0.1, 0.2, 0.3, 0.4]),
        ({"range": {"from": 1, "to": 2, "step": 0.75}}, [1, 1.75]),
        ({"range": {"from": 5, "to": 15, "step": 5, "unit": "Mbps"}}, ["5 Mbps", "10 Mbps", "15 Mbps"]),
        ({"log_range": {"from": 0.001, "to": 0.1, "count": 3}}, [0.001, 0.01, 0.1]),
        ({"log_range": {"from": 1, "to": 8, "count": 4, "unit": "Mbps"}}, ["1 Mbps", "2 Mbps", "4 Mbps", "8 Mbps"]),
        ({"few": 1, "many": 9}, [1, 9]),
        ([True, None, 1.5], [True, None, 1.5]),
    ],
)
def test_an_axis_is_a_list_a_range_or_labelled_values(tmp_path, axis, values):
    points = load_sweep(write_sweep(tmp_path, axes={"a.b": axis}))
    assert [point.values["a.b"] for point in points] == values
    assert all(type(point.values["a.b"]) is type(value) for point, value in zip(points, values, strict=True))


def test_zipped_axes_change_together(tmp_path):
    group = {BANDWIDTH: ["5 Mbps", "9 Mbps"], "cluster.wan.rtt": ["1 ms", "2 ms"]}
    points = load_sweep(write_sweep(tmp_path, axes={"seed": [1, 2]}, zipped=[group]))
    assert [point.name for point in points] == [
        "seed1-bandwidth5Mbps",
        "seed1-bandwidth9Mbps",
        "seed2-bandwidth5Mbps",
        "seed2-bandwidth9Mbps",
    ]
    assert points[1].scenario().cluster.wan.rtt == 0.002


def test_combinations_can_be_excluded(tmp_path):
    axes = {"system": ["ako", "dlion"], "seed": [1, 2, 3]}
    assert names(tmp_path, axes=axes, exclude=[{"system": "ako", "seed": [2, 3]}, {"seed": 1}]) == [
        "dlion-seed2",
        "dlion-seed3",
    ]


def test_several_bases_are_an_axis(tmp_path):
    found = names(tmp_path, base=["base.yaml", "paper/homo_a"], axes={"seed": [1, 2]})
    assert found == ["base-seed1", "base-seed2", "homo_a-seed1", "homo_a-seed2"]


def test_names_follow_a_template_or_the_axes(tmp_path):
    axes = {"system": {"max.10": {"name": "dlion"}, "my:System": "ako"}, BANDWIDTH: ["5 Mbps"], "seed": [1]}
    assert names(tmp_path, axes=axes, names="x{seed}_{bandwidth}-{system}") == ["x1_5Mbps-max.10", "x1_5Mbps-my.System"]
    assert names(tmp_path, axes=axes) == ["max.10", "my.System"]
    assert names(tmp_path) == ["base"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"axis": {}}, ["unknown key 'axis'; did you mean 'axes'?", "allowed: description, base, axes"]),
        ({"base": "quikstart"}, ["base: quikstart: no such file", "quickstart"]),
        ({"base": 5}, ["base: must be a list, not 5"]),
        ({"axes": {"seed": 5}}, ["axes.seed: must be a list, not 5"]),
        ({"axes": {"seed": []}}, ["axes.seed", "1 or more entries"]),
        ({"axes": {"seed": [1, 2, 1]}}, ["axes.seed.2: '1' exists twice"]),
        ({"axes": {"system": [{"name": "ako"}]}}, ["axes.system.0", "{label: value, ...}"]),
        ({"axes": {"seed": {"range": {"from": 1}}}}, ["axes.seed.range.to: is required"]),
        ({"axes": {"seed": {"range": {"from": 3, "to": 1}}}}, ["axes.seed.range.to", "before it begins at 3"]),
        ({"axes": {"seed": {"range": {"from": 1, "to": 3, "step": 0}}}}, ["axes.seed.range.step", "more than 0"]),
        ({"axes": {"seed": {"range": {"from": 1, "to": 3, "by": 2}}}}, ["axes.seed.range", "'by'", "step"]),
        ({"axes": {"a": {"range": {"from": 0, "to": 1e12, "unit": "s"}}}}, ["axes.a.range: ", "allowed: up to 100000"]),
        ({"axes": {"a": {"log_range": {"from": 1, "to": 2, "count": 10**9}}}}, ["axes.a.log_range.count: ", "or less"]),
        ({"axes": {a: {"range": {"from": 1, "to": 9999}} for a in "ab"}}, ["axes: its axes have 99980001 combinat"]),
        ({"axes": {"a": {"log_range": {"from": 0, "to": 1, "count": 2}}}}, ["axes.a.log_range.from", "more than 0"]),
        ({"axes": {"a..b": [1]}}, ["axes", "'a..b' is not a dotted path"]),
        ({"axes": {"seed": [1]}, "zipped": [{"seed": [1]}]}, ["zipped.0.seed: 'seed' is already an axis"]),
        ({"zipped": [{"a": [1, 2], "b": [1]}]}, ["zipped.0: zipped axes must be equally long, but a has 2, b has 1"]),
        ({"axes": {"seed": [1]}, "exclude": [{"sed": 1}]}, ["exclude.0: 'sed' is not an axis; did you mean 'seed'?"]),
        ({"axes": {"seed": [1]}, "exclude": [{"seed": 2}]}, ["exclude.0.seed: '2' is not a value", "allowed: 1"]),
        ({"axes": {"seed": [1]}, "exclude": [{"seed": 1}]}, ["exclude: leaves out all runs"]),
        ({"axes": {"seed": [1, 2]}, "names": "run"}, ["names: 2 runs have the name 'run'", "{seed}"]),
        ({"axes": {"seed": [1, 2]}, "names": "{sed}"}, ["names: {sed} is not an axis", "allowed: {base}, {seed}"]),
        ({"axes": {"a.x": [1], "b.x": [2]}, "names": "{x}"}, ["names: {x} matches several axes", "{a.x}, {b.x}"]),
        ({"axes": {"seed": [1]}, "names": " "}, ["names", "results in an empty name"]),
    ],
)
def test_bad_input_is_one_line_with_file_and_path(tmp_path, keys, words):
    with pytest.raises(InputError) as fault:
        load_sweep(write_sweep(tmp_path, **keys))
    assert str(fault.value).startswith(f"{tmp_path / 'sweep.yaml'}: ")
    assert not fault.value.further
    for word in words:
        assert word in str(fault.value)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"workload.batch_size": [0, 8]}, ["axes.workload.batch_size: must be 1 or more"]),
        ({"workload.batchsize": [8]}, ["unknown key 'batchsize'", "batch_size"]),
        ({"duration.x": [8]}, ["axes.duration.x", "which has no 'x' to set"]),
        ({BANDWIDTH: ["5 Mb"]}, [f"axes.{BANDWIDTH}: '5 Mb' is not a bandwidth"]),
        ({"system": ["dlion", "dlionn"]}, ["axes.system: ", "did you mean 'dlion'"]),
        ({"system.exchange.n_min": [1, 101]}, ["axes.system.exchange.n_min", "100 or less"]),
        ({"system": {"a": {"name": "dlion", "exchange": {"n_mim": 1}}}}, ["axes.system", "n_mim"]),
    ],
)
def test_an_invalid_point_is_reported_at_its_axis(tmp_path, axes, words):
    with pytest.raises(InputError) as fault:
        check(load_sweep(write_sweep(tmp_path, axes=axes)))
    assert not fault.value.further
    for word in words:
        assert word in str(fault.value)


def test_an_invalid_value_of_a_zipped_axis_is_reported_there(tmp_path):
    zipped = [{"seed": [1, 2], "workload.batch_size": [8, 0]}]
    with pytest.raises(InputError) as fault:
        check(load_sweep(write_sweep(tmp_path, zipped=zipped)))
    assert fault.value.path == "zipped.0.workload.batch_size"


def test_bases_are_named_by_their_files(tmp_path):
    (tmp_path / "sub").mkdir()
    for bases, exclude, words in (
        (["base.yaml", "sub/base.yaml"], [], "base.1: base.yaml and sub/base.yaml are both named 'base'"),
        (["base.yaml"], [{"base": "bose", "seed": 1}], "exclude.0.base: 'bose' is not a base; did you mean 'base'?"),
    ):
        file = write_sweep(tmp_path, base=bases, exclude=exclude, axes={"seed": [1, 2]})
        (tmp_path / "sub/base.yaml").write_text((tmp_path / "base.yaml").read_text())
        with pytest.raises(InputError) as fault:
            load_sweep(file)
        assert words in str(fault.value)


def test_an_invalid_base_is_reported_at_the_base(tmp_path):
    file = write_sweep(tmp_path, axes={"seed": [1, 2]})
    (tmp_path / "base.yaml").write_text((tmp_path / "base.yaml").read_text().replace("digits", "digits\n  x: 1"))
    with pytest.raises(InputError, match="unknown key 'x'") as fault:
        check(load_sweep(file))
    assert fault.value.file == tmp_path / "base.yaml"
    assert not fault.value.further


@pytest.mark.parametrize("text", ["", "- 1\n", "base: [1\n"])
def test_a_file_without_a_sweep_is_refused(tmp_path, text):
    (tmp_path / "sweep.yaml").write_text(text)
    with pytest.raises(InputError) as fault:
        load_sweep(tmp_path / "sweep.yaml")
    assert fault.value.file == tmp_path / "sweep.yaml"


def test_an_axis_without_effect_is_refused(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text("base: quickstart\naxes: {cluster.wan.rtt: [20 ms, 80 ms]}\n")
    with pytest.raises(InputError) as fault:
        check(load_sweep(file))
    assert (fault.value.file, fault.value.path) == (file, "axes.cluster.wan.rtt")
    assert "nothing reads it: all of cluster.wan.paths have their own rtt" in str(fault.value)
    assert not fault.value.further


def test_an_axis_may_set_all_entries_of_a_list(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text("base: quickstart\naxes: {cluster.wan.paths.*.rtt: [20 ms, 80 ms, soon]}\n")
    *good, bad = load_sweep(file)
    assert [point.name for point in good] == ["rtt20ms", "rtt80ms"]
    assert [point.scenario().cluster.wan_path("east", "north")[1] for point in good] == [0.02, 0.08]
    with pytest.raises(InputError, match="'soon' is not a duration") as fault:
        bad.scenario()
    assert fault.value.path == "axes.cluster.wan.paths.*.rtt"


def test_equal_points_are_found(tmp_path):
    systems = {"plain": "dlion", "spelt": {"name": "dlion", "exchange": "max_n"}, "other": "ako"}
    points = load_sweep(write_sweep(tmp_path, axes={"system": systems, "seed": [1, 2]}))
    assert equal_points(points) == [["plain-seed1", "spelt-seed1"], ["plain-seed2", "spelt-seed2"]]


def test_the_pages_first_example_has_no_equal_points(tmp_path):
    first, *_ = blocks(ROOT / "docs" / "sweeps.md", "yaml")
    (tmp_path / "sweep.yaml").write_text(first)
    points = load_sweep(tmp_path / "sweep.yaml")
    check(points)
    assert len(points) == 18
    assert equal_points(points) == []


def test_a_misplaced_parameter_is_reported_with_its_right_path(tmp_path):
    with pytest.raises(InputError) as fault:
        check(load_sweep(write_sweep(tmp_path, axes={"system.period": [10, 20]})))
    assert fault.value.path == "axes.system.period"
    assert "system.exchange.period (" in str(fault.value)
