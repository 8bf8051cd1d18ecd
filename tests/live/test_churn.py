"""Runs that nodes leave and come back to, with all nodes in one process."""

import pytest
import torch

from dlion_sim.assembly.outages import Outage
from dlion_sim.errors import InputError
from dlion_sim.live.churn import _of
from dlion_sim.live.driver import NobodyReachedError
from dlion_sim.live.gathering import gather
from dlion_sim.live.node_config import NodeConfig
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.simulation import simulate
from tests.live.mesh import identity_of, until
from tests.live.together import Together
from tests.simulation.scenarios import digits

CLOUD = {"clouds": [{"name": "a", "workers": [{"count": 3, "compute": "400 cores"}]}]}


def brief(*overrides, **keys):
    """Three workers whose iterations take about 12 ms."""
    keys = {"cluster": CLOUD, "duration": "600 s", "availability": {}, **keys}
    return digits("workload.evaluate_every=0.2 s", *overrides, **keys)


class Run(Together):
    """A run that is interrupted once `what` has been done."""

    def __init__(self, scenario, folder, what, **options):
        super().__init__(scenario, folder / "parts", **options)
        self.outcomes = self.run(lambda together: self._do(what))
        self.gathered = gather(folder / "parts", folder / "run")
        self.told = self.gathered.membership()

    async def _do(self, what):
        await what(self)
        for rank, driver in self.drivers.items():
            if not self.tasks[rank].done():
                driver.interrupt()

    def iteration(self, rank):
        return self.members[rank].participant.iteration

    async def go_on(self, *ranks, iterations=10):
        """Wait until each of them has done so many more."""
        since = {rank: self.iteration(rank) for rank in ranks}
        await self.until(lambda: all(self.iteration(rank) >= since[rank] + iterations for rank in ranks))

    async def take_part(self, rank):
        """Wait until who joins has done some iterations with the others."""
        await self.until(lambda: self.iteration(rank) >= 30)
        await self.go_on(0, 1, 2)

    def times(self, what, participant):
        return (self.told.query("what == @what and participant == @participant"))["virtual_time"].tolist()


async def is_killed_and_back(run):
    await run.go_on(2)
    run.kill(2)
    await run.until(lambda: min(run.iteration(0), run.iteration(1)) >= 30)
    await run.start_again(2)
    await run.take_part(2)


@pytest.mark.parametrize("system", ["baseline", "ako", "gaia", "hop", "adpsgd", "dpsgd", "dlion"])
def test_a_node_that_was_killed_and_started_again_takes_part(tmp_path, system):
    run = Run(brief(system=system), tmp_path, is_killed_and_back)
    assert [outcome.ending.status for outcome in run.outcomes] == ["interrupted"] * 3
    peers = len(run.setting.neighbours(2))
    assert [len(run.times(what, 2)) for what in ("lost", "up", "found", "joined")] == [peers, 1, peers, 1]
    joined = run.told[run.told["what"] == "joined"].iloc[0]
    assert joined["incarnation"] == 1
    assert joined["bytes"] >= 4 * run.setting.layout.size
    assert joined["peer"] in (0, 1)
    assert joined["iteration"] >= 29
    later = run.gathered.iterations().query("worker == 2 and virtual_time > @joined.virtual_time")
    assert later["iteration"].min() == joined["iteration"] + 1
    assert next(iter(run.outcomes[2].snapshots)).time >= joined["virtual_time"]


def test_synchronous_workers_have_equal_parameters_after_a_return(tmp_path):
    run = Run(brief(system="baseline"), tmp_path, is_killed_and_back)
    of_all = [member.participant for member in run.members]
    same = min(worker.iteration for worker in of_all)
    parameters = [worker.replica.parameters for worker in of_all if worker.iteration == same]
    assert all(torch.equal(parameters[0], other) for other in parameters)
    joined = run.told[run.told["what"] == "joined"]["iteration"].item()
    iterations = run.gathered.iterations()
    together = iterations[iterations["iteration"] > joined].groupby("iteration")["worker"].count()
    assert (together == 3).sum() >= 9


def test_a_worker_absent_at_the_start_joins(tmp_path):
    """It has a part like everybody's, of its first incarnation."""
    availability = {"workers": {"a/2": {"down": [["0 s", "40 s"]]}}}

    async def comes(run):
        await run.until(lambda: min(run.iteration(0), run.iteration(1)) >= 30)
        await run.start_again(2, incarnation=0)
        await run.take_part(2)

    run = Run(brief(system="baseline", availability=availability), tmp_path, comes, absent={2})
    assert [len(run.times(what, 2)) for what in ("lost", "up", "found", "joined")] == [0, 1, 2, 1]
    assert set(run.told["incarnation"]) == {0}


def test_a_worker_whose_sponsor_is_lost_joins_by_another_one(tmp_path):
    async def loses_its_sponsor(run):
        await run.go_on(2)
        run.kill(2)
        await run.until(lambda: min(run.iteration(0), run.iteration(1)) >= 30)
        run.drivers.pop(2)
        await run.start_again(2)
        await run.until(lambda: 2 in run.drivers and len(run.drivers[2]._links._sessions) == 2)
        run.kill(0)
        await run.until(lambda: run.iteration(2) >= 30)
        await run.go_on(1, 2)

    run = Run(brief(system="baseline"), tmp_path, loses_its_sponsor)
    assert len(run.times("joined", 2)) == 1
    assert len(run.times("lost", 0)) == 2


def test_contributions_of_a_leaving_worker_count_until_it_has_left(tmp_path):
    async def leaves(run):
        await run.go_on(0, 1, 2)
        run.drivers[2].leave()
        await run.until(run.tasks[2].done)
        await run.go_on(0, 1)

    run = Run(brief(system="baseline"), tmp_path, leaves)
    assert (run.outcomes[2].ending.status, run.outcomes[2].ending.stopped_by) == ("completed", "left")
    assert [len(run.times(what, 2)) for what in ("left", "lost")] == [1, 2]
    assert (run.told.query("what == 'lost'")["seconds"] < run.timeouts.silence).all()
    iterations = run.gathered.iterations()
    last = iterations[iterations["worker"] == 2]["iteration"].max()
    others = iterations[iterations["worker"] != 2].set_index("iteration")["applied"].sort_index()
    assert set(others.loc[:last]) == {2}
    # It has sent what the others applied in the iteration in which it was asked to.
    assert set(others.loc[last + 2 :]) == {1}


def test_all_may_be_lost_one_after_another_and_return(tmp_path):
    async def one_after_another(run):
        for rank in range(3):
            await run.go_on(*range(3))
            run.kill(rank)
            others = [each for each in range(3) if each != rank]
            await run.go_on(*others)
            await run.start_again(rank)
            least = max(run.iteration(each) for each in others)
            await run.until(lambda rank=rank, least=least: run.iteration(rank) > least)

    run = Run(brief(system="baseline"), tmp_path, one_after_another)
    assert [len(run.times("joined", rank)) for rank in range(3)] == [1, 1, 1]


def test_joining_a_run_without_nodes_fails_with_a_reason(tmp_path):
    together = Together(brief(system="baseline"), tmp_path / "parts")
    together.absent = {0, 1, 2}
    together.timeouts = type(together.timeouts)(start=0.5)

    async def joins(together):
        await together.start_again(2)

    said = str(together.run(joins)[2])
    assert said.startswith("could not start within 0.5 s: no node of the run was reached; node 0 at 127.0.0.1:")
    assert said.endswith("was not reached: Connection refused")


def test_a_node_that_joins_does_not_wait_for_who_was_lost_for_good_before(tmp_path):
    workers = {"a/1": {"down": [["1 ms", None]]}, "a/2": {"down": [["1 ms", "600 s"]]}}
    scenario = brief("iterations=150", system="baseline", duration=None, availability={"workers": workers})

    async def two_are_lost(together):
        together.kill(1)
        together.kill(2)
        await together.until(lambda: together.members[0].participant.iteration >= 10)
        await together.start_again(2)
        await together.until(lambda: together.tasks[0].done() and together.tasks[2].done())

    outcomes = Together(scenario, tmp_path).run(two_are_lost)
    assert {(outcomes[rank].ending.status, outcomes[rank].ending.stopped_by) for rank in (0, 2)} == {
        ("completed", "iterations")
    }


@pytest.fixture
def impatient(monkeypatch):
    """Nodes that give up joining once they and others have refused each other."""

    async def in_vain(rendezvous):
        await until(lambda: rendezvous.refused and any(pair.is_refused for pair in rendezvous._pairs.values()))
        raise TimeoutError

    monkeypatch.setattr(Rendezvous, "beginning", in_vain)


def test_who_joins_with_another_secret_is_told_so_and_not_that_the_run_is_over(tmp_path, monkeypatch, impatient):
    together = Together(brief(system="baseline"), tmp_path)

    async def joins_with_another_secret(together):
        together.kill(2)
        monkeypatch.setattr("tests.live.together.identity_of", lambda rank: identity_of(rank, b"another secret.."))
        await together.start_again(2)
        await together.until(together.tasks[2].done)
        for rank in (0, 1):
            together.drivers[rank].interrupt()

    outcome = together.run(joins_with_another_secret)[2]
    assert type(outcome) is InputError
    assert "does it have the same secret or CA, scenario, version and code?" in str(outcome)


def test_where_all_nodes_were_lost_and_are_to_join_the_run_is_over(tmp_path, impatient):
    together = Together(brief(system="baseline"), tmp_path)
    together.absent = {0, 1, 2}

    async def two_join(together):
        for rank in (0, 1):
            await together.start_again(rank)

    outcomes = together.run(two_join)
    assert [type(outcome) for outcome in outcomes] == [NobodyReachedError, NobodyReachedError, type(None)]


@pytest.mark.parametrize("system", ["ring_allreduce", {"name": "baseline"}], ids=["ring", "abort"])
def test_a_run_that_needs_all_workers_fails_with_a_reason(tmp_path, system):
    together = Together(brief(system=system, availability={"on_loss": "abort"}), tmp_path)

    async def dies(together):
        together.kill(2)

    for outcome in together.run(dies)[:2]:
        assert outcome.ending.status == "failed"
        assert "lost: node 2" in outcome.ending.stopped_by


def test_workers_wait_for_a_lost_peer_until_it_returns(tmp_path):
    async def waits(run):
        await run.go_on(0, 1, 2)
        run.kill(2)
        await run.until(run.tasks[2].done)
        await run.start_again(2)
        await run.until(lambda: run.iteration(2) > 0)
        await run.go_on(0, 1, 2)

    run = Run(brief(system="baseline", availability={"on_loss": "wait"}), tmp_path, waits)
    assert len(run.times("joined", 2)) == 1
    applied = run.gathered.iterations().groupby("iteration")["applied"].max()
    assert (applied == 2).sum() >= len(applied) - 2  # but where it was lost, and where it begins


def test_joining_takes_a_run_that_may_be_joined(tmp_path):
    together = Together(digits(cluster=CLOUD), tmp_path)
    config = NodeConfig(0, ["a"] * 3, b"", tmp_path, joins=True)
    with pytest.raises(InputError, match="nobody can join a run in which all are there all the time"):
        config.check(together.setting)


def test_a_returned_node_exchanges_datagrams_again(tmp_path):
    run = Run(brief("transport=dlcp", system="baseline"), tmp_path, is_killed_and_back)
    (joined,) = run.times("joined", 2)
    transfers = run.gathered.transfers()
    lost = transfers[(transfers["begin"] > joined) & (transfers["channel"] == "data")].dropna(subset=["lost_bytes"])
    assert {(0, 2), (2, 0), (1, 2), (2, 1)} <= set(zip(lost["sender"], lost["receiver"], strict=True))


PERIOD = 20
WAN = {"bandwidth": "10 Gbps", "rtt": "20 us"}


async def leaves_and_is_back(run):
    """Well between two exchanges, so that it does not matter who is some iterations ahead."""
    await run.until(lambda: 5 <= run.iteration(0) % PERIOD <= 10)
    run.drivers[2].leave()
    await run.until(run.tasks[2].done)
    await run.until(lambda: 1 <= run.iteration(0) % PERIOD <= 5)
    await run.start_again(2)
    await run.until(lambda: run.iteration(2) > 0)
    await run.go_on(0, 1, 2, iterations=PERIOD)


def three_clouds(sponsor=None):
    """A worker in each; another one than `sponsor` answers the last one later, where times are simulated."""
    clouds = [{"name": name, "workers": [{"compute": "400 cores"}]} for name in "abc"]
    far = [] if sponsor is None else [{"between": ["ab"[1 - sponsor], "c"], "rtt": "100 us"}]
    return {"clouds": clouds, "wan": {**WAN, "paths": far}}


LOCAL_SGD = {"name": "local_sgd", "exchange": {"period": PERIOD}}


@pytest.mark.parametrize("system", ["baseline", "gaia", "dpsgd", LOCAL_SGD], ids=str)
def test_in_step_a_live_run_with_a_leave_and_a_return_learns_what_a_simulated_one_does_to_the_bit(tmp_path, system):
    """When somebody went and came, and from whom it has the state, is taken from the live run.

    By iterations, for which time stands in the simulated, and by who answers first.
    """
    run = Run(brief(system=system, cluster=three_clouds()), tmp_path, leaves_and_is_back)
    live = losses(run.gathered)
    ((sponsor, begun),) = run.told.query("what == 'joined'")[["peer", "iteration"]].to_numpy(dtype=int)
    gone = live[2].loc[:begun].last_valid_index() + 1
    keys = {"system": system, "cluster": three_clouds(sponsor)}

    def simulated_with(*down):
        workers = {"c/0": {"down": [[*down]], "kind": "leave"}} if down else {}
        scenario = brief("duration=2 s", availability={"workers": workers}, **keys)
        return simulate(scenario, tmp_path / f"simulated{len(down)}{down[-1:] == ('9 s',)}", device="cpu")

    def within(iteration, run):
        ends = run.iterations().query("worker == 0").set_index("iteration")["virtual_time"]
        return f"{(ends[iteration - 1] + ends[iteration]) / 2:.6f} s"

    leaves = within(gone, simulated_with())
    again = simulated_with(leaves, within(begun, simulated_with(leaves, "9 s")))
    simulated = losses(again)
    assert again.membership().query("what == 'joined'")[["peer", "iteration"]].to_numpy(dtype=int).tolist() == [
        [sponsor, begun]
    ]
    whole = live.loc[: live.notna().all(axis=1)[::-1].idxmax()]
    assert whole[2].isna().any()
    assert len(whole) > begun + PERIOD / 2
    assert whole.equals(simulated.loc[: whole.index[-1]])


def losses(run):
    return run.iterations().pivot(index="iteration", columns="worker", values="loss")


def test_a_node_that_is_to_leave_is_killed_by_a_crash_of_its_machine():
    outages = [Outage(10, 20, "leave", cut_short=12), Outage(30, 40, "leave")]
    told = [(each.time, each.what, each.incarnation) for each in _of(0, iter(outages), 1.0)]
    assert told[:3] == [(10, "notice", 0), (12, "end", 0), (21, "return", 1)]
    assert told[3:] == [(30, "notice", 1), (41, "return", 2)]


def test_a_leave_that_a_crash_cuts_short_loses_no_more_measurements_than_a_crash(tmp_path):
    slow = {"name": "b", "workers": [{"compute": "0.1 cores"}]}
    cluster = {"clouds": [{"name": "a", "workers": [{"count": 2, "compute": "400 cores"}]}, slow], "wan": WAN}
    availability = {
        "workers": {"b/0": {"down": [["1 s", "9 s"]], "kind": "leave"}},
        "clouds": {"b": {"down": [["1.6 s", "2 s"]]}},
    }

    async def is_cut_short(run):
        await run.until(lambda: run.drivers[2].now >= 1)
        run.drivers[2].leave()
        await run.until(lambda: run.drivers[2].now >= 1.6)
        run.kill(2)
        await run.until(run.tasks[2].done)

    run = Run(brief(system="baseline", cluster=cluster, availability=availability), tmp_path, is_cut_short)
    cut = run.gathered.metrics().query("kind == 'cut'")
    assert cut["worker"].tolist() == [2]
    assert cut["virtual_time"].item() == pytest.approx(1.6, abs=0.2)
