"""Hints in messages on input that is nearly right."""

from __future__ import annotations

import pytest
import yaml

from dlion_sim.cli.conventions import why_no_exchange
from dlion_sim.errors import InputError
from dlion_sim.scenario import from_data
from tests.command import dlion
from tests.made_up import made_up_run
from tests.simulation.scenarios import digits


def errors(capsys, monkeypatch, *arguments) -> list[str]:
    assert dlion(monkeypatch, *arguments) == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (["--duration", "10s"], "--set duration=..."),
        (["--duration=10s"], "--set duration=..."),
        (["--batch-size", "16"], "--set workload.batch_size=..."),
        (["--workload.batch_size=16"], "--set workload.batch_size=..."),
        (["--learning_rate", "0.1"], "--set workload.optimizer.learning_rate=..."),
    ],
)
@pytest.mark.parametrize("command", [["run"], ["live"], ["recommend", "-o", "out"], ["calibrate", "compute"]])
def test_a_scenario_key_given_as_an_option(capsys, monkeypatch, command, given, hint):
    (line,) = errors(capsys, monkeypatch, *command, "quickstart", *given)
    option = given[0].partition("=")[0]
    assert line == f"dlion: {option}: is not an option but a scenario's key; allowed: {hint}"


def test_an_unknown_option_keeps_its_message(capsys, monkeypatch):
    assert "No such option: --durrr" in " ".join(errors(capsys, monkeypatch, "run", "quickstart", "--durrr"))


def test_a_unit_wrong_in_every_cloud_is_reported_once(tmp_path, capsys, monkeypatch):
    clouds = [{"name": f"s{site}", "workers": [{"nic": f"{site + 1} GBps"}]} for site in range(5)]
    data = {"name": "a", "duration": "1 s", "workload": {"dataset": "digits"}, "system": "dlion"}
    data["cluster"] = {"clouds": clouds, "wan": {"bandwidth": "1 Gbps", "rtt": "1 s"}}
    with pytest.raises(InputError, match=r"write GB/s .*\(and at 4 more places\)") as fault:
        from_data(data)
    assert fault.value.path == "cluster.clouds.0.workers.0.nic"
    assert fault.value.further == ()
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(data))
    assert len(errors(capsys, monkeypatch, "run", tmp_path / "a.yaml")) == 1


def test_keys_missing_at_two_places_are_reported_twice():
    data = {"name": "a", "duration": "1 s", "workload": {"dataset": "digits"}, "system": "dlion"}
    with pytest.raises(InputError) as fault:
        from_data({**data, "cluster": {"clouds": [{"workers": [{}]}, {"workers": [{}]}]}})
    assert [each.path for each in fault.value.further] == ["cluster.clouds.1.name"]


def test_the_note_on_short_runs_names_the_systems_period(tmp_path):
    assert "period" not in why_no_exchange(made_up_run(tmp_path / "dlion", exchanging=False))
    run = made_up_run(tmp_path / "diloco", system="diloco", exchanging=False)
    assert "period" not in why_no_exchange(run)
    from dlion_sim.simulation import simulate

    run = simulate(digits("system=diloco", "duration=1 s"), tmp_path / "run")
    assert run.without_exchange
    assert "exchanges every 500 iterations" in why_no_exchange(run)
