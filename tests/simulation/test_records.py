"""The records of transfers, waits and profiling."""

import pytest

from dlion_sim.analysis.timeline import spans, waited_most_for
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

SLOW = {"clouds": [{"name": "a", "workers": [{"count": 2, "compute": "24 cores", "nic": "24 kbps"}]}]}
"""A whole gradient takes some 12 s."""


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    scenario = digits("workload.evaluate_every=3 s", cluster=SLOW, duration="20 s", system="baseline")
    return simulate(scenario, tmp_path_factory.mktemp("slow") / "run")


def test_a_link_in_use_carries_bytes_in_every_interval(slow):
    own = slow.links().query("sender == 0").set_index("virtual_time")["bytes"]
    assert own.index.tolist() == [3, 6, 9, 12, 15, 18, 20]
    assert own.loc[[6, 9, 12]].tolist() == pytest.approx([own.loc[6]] * 3, abs=2)


def test_bytes_are_those_of_complete_messages_and_of_the_sent_parts_at_the_end(slow):
    transfers = slow.transfers()
    whole = transfers.dropna(subset=["end"])
    assert len(whole) == slow.links()["messages"].sum() > 0
    assert whole["bytes"].nunique() == 1
    cut_off = transfers[transfers["end"].isna()]
    assert cut_off["bytes"].between(1, whole["bytes"].iloc[0] - 1).all()
    assert len(cut_off)
    assert slow.links()["bytes"].sum() == transfers["bytes"].sum() == slow.summary["bytes_sent"]
    assert (whole["end"] - whole["begin"]).min() > 10


@pytest.mark.parametrize(("given", "rows"), [("true", True), ("false", False)])
def test_transfers_are_recorded_if_requested(tmp_path, given, rows):
    run = simulate(digits(f"record_transfers={given}", duration="0.3 s"), tmp_path / "run")
    assert bool(len(run.transfers())) is rows
    assert run.links()["bytes"].sum() > 0


def test_transfers_are_recorded_by_default_up_to_64_workers():
    for count, recorded in ((64, True), (65, False)):
        clouds = [{"name": "a", "workers": [{"count": count}]}]
        assert digits(cluster={"clouds": clouds}).records_transfers is recorded


def test_profiling_is_a_span_of_its_own(tmp_path):
    all_spans = spans(simulate(digits(duration="1 s"), tmp_path / "run").metrics())
    first = all_spans.groupby("worker").head(2).reset_index(drop=True)
    assert first["what"].tolist() == ["profile", "compute"] * 3
    assert (first["begin"][::2] == 0).all()
    assert first["begin"][1::2].tolist() == pytest.approx(first["end"][::2].tolist())


def test_an_endless_wait_is_a_span_with_its_cause(tmp_path):
    clouds = [
        {"name": "a", "workers": [{"count": 2, "compute": "24 cores"}]},
        {"name": "b", "workers": [{"compute": "24 cores", "nic": {"steps": {"0 s": "50 Mbps", "1 s": "0 Mbps"}}}]},
    ]
    cluster = {"clouds": clouds, "wan": {"bandwidth": "unlimited", "rtt": "10 ms"}}
    run = simulate(digits(cluster=cluster, duration="9 s", system="baseline"), tmp_path / "run")
    last = spans(run.metrics()).groupby("worker").last()
    assert last["what"].tolist() == ["wait"] * 3
    assert last["waited_for"].tolist()[:2] == [2, 2]
    assert last["end"].tolist() == [run.summary["virtual_seconds"]] * 3
    assert last["end"].max() >= 1


def test_the_peer_that_a_worker_waited_for_most_is_known(tmp_path):
    """The slow one is who holds up the two others."""
    run = simulate(digits(duration="4 s", system="baseline"), tmp_path / "run")
    waits = run.iterations().query("wait_seconds > 0")
    assert waits["waited_for"].notna().all()
    assert set(waits["wait_reason"]) == {"contribution"}
    most = waited_most_for(spans(run.metrics()))
    assert most.loc[[0, 1], "peer"].tolist() == [2, 2]
    own = waits[(waits["worker"] == 0) & (waits["waited_for"] == 2)]
    assert most.loc[0, "seconds"] == pytest.approx(own["wait_seconds"].sum())
