"""Churn at any time: present workers continue, and learn."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.protocol.membership_messages import State
from dlion_sim.protocol.phases import Phase
from tests.protocol.churn import SYSTEMS, World, noise

ITERATIONS = 12


def crash(world):
    world.happen(4, world.crash, 1)


def leave(world):
    world.happen(4, world.leave, 1)


def leave_in_time(world):
    world.happen(4, world.leave, 1, 2.0)
    world.happen(8, world.come, 1)


def rejoin(world):
    world.happen(4, world.crash, 1)
    world.happen(8, world.come, 1)


def newcomer(world):
    world.happen(4, world.come, 3)


def two_at_once(world):
    for number in (1, 2):
        world.happen(4, world.crash, number)
        world.happen(8, world.come, number)


def sponsor_dies(world):
    rejoin(world)
    world.watch(State, lambda sponsor, newcomer: world.crash(sponsor) if sponsor < world.workers else None)


def newcomer_dies(world):
    rejoin(world)
    world.watch(State, lambda sponsor, newcomer: world.crash(newcomer))
    world.happen(40, world.come, 1)


def all_die(world):
    for number in range(world.workers):
        world.happen(4, world.crash, number)
        world.happen(6 + number / 10, world.come, number)


def rejoin_after_leaving(world):
    world.happen(4, world.leave, 3)
    world.happen(20, world.come, 3)


def two_rejoin(world):
    """Members are in unlike iterations when they tell theirs: those behind may not wait for who begins later."""
    for number in (1, 3):
        world.happen(3.67, world.crash, number)
        world.happen(9.53, world.come, number)


def parted(world):
    world.happen(4, world.part, 0, 1)
    world.happen(8, world.mend, 0, 1)


SERVED = ["parameter_server", "async_local_sgd", "fedavg"]
WHAT = [
    crash,
    leave,
    leave_in_time,
    rejoin,
    two_rejoin,
    newcomer,
    two_at_once,
    sponsor_dies,
    newcomer_dies,
    all_die,
    parted,
]


def ends_well(world):
    """All present workers have done their iterations, with finite parameters."""
    assert not world.aborts
    for worker in world.present:
        assert (worker.phase, worker.iteration >= ITERATIONS) == (Phase.STOPPED, True), world.log(worker.setup.worker)
        assert torch.isfinite(worker.replica.parameters).all()


@pytest.mark.parametrize(
    ("system", "what"),
    # Workers with parameter servers have no connections that could fail.
    [(one, what) for one in SYSTEMS for what in WHAT if what is not parted or one["name"] not in SERVED],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_present_workers_continue(system, what):
    for seed in range(2):
        world = World(
            system, 4, noise, seed=seed, iterations=ITERATIONS, on_loss="go_on", absent=(3,) if what is newcomer else ()
        )
        what(world)
        world.run()
        ends_well(world)
        if what in (rejoin, newcomer):
            assert world.logs[-1].joined, "it joined while the others were training"


@pytest.mark.parametrize("what", [crash, leave, parted, newcomer], ids=lambda what: what.__name__)
@pytest.mark.parametrize("on_loss", ["go_on", "wait", "abort"])
@pytest.mark.parametrize(
    "system",
    [
        {"name": "ring_allreduce"},
        {"name": "local_sgd", "exchange": {"period": 3, "route": "ring"}},
        {"name": "power_sgd"},
    ],
    ids=str,
)
def test_rounds_of_all_abort_after_a_loss_and_names_an_alternative(system, what, on_loss):
    world = World(
        system,
        4,
        noise,
        iterations=ITERATIONS,
        on_loss=on_loss,
        absent=(3,) if what is newcomer else (),
    )
    what(world)
    world.run()
    (reason,) = world.aborts
    begin, instead = {
        "ring_allreduce": ("the ring is broken, whatever on_loss says; ", "system: baseline"),
        "local_sgd": ("the ring is broken, whatever on_loss says; ", "route: all_to_all"),
        "power_sgd": ("PowerSGD's rounds need all workers, whatever on_loss says; ", "system: dlion_sparse"),
    }[system["name"]]
    assert reason.startswith(begin)
    assert instead in reason
    assert reason.endswith("can continue")


@pytest.mark.parametrize("name", ["local_sgd", "diloco"])
@pytest.mark.parametrize("what", [leave, rejoin_after_leaving, newcomer, crash, parted], ids=lambda what: what.__name__)
def test_in_half_precision_workers_may_leave_but_not_fail(name, what):
    """A lost worker's last pseudo-gradient may have reached only some, whose parameters would stay different."""
    system = {"name": name, "exchange": {"period": 3, "precision": "fp16"}}
    for seed in range(2):
        absent = (3,) if what is newcomer else ()
        world = World(system, 4, noise, seed=seed, iterations=ITERATIONS, on_loss="go_on", absent=absent)
        what(world)
        world.run()
        if what in (crash, parted):
            assert world.aborts == [
                "a lost worker's last pseudo-gradient may have reached only some; precision: fp32 can continue"
            ]
            continue
        ends_well(world)
        first, *others = [worker.replica.parameters for worker in world.present]
        assert all(torch.equal(first, each) for each in others)


@pytest.mark.parametrize("on_loss", ["go_on", "wait", "abort"])
def test_training_aborts_without_a_server(on_loss):
    world = World({"name": "parameter_server"}, 4, noise, iterations=ITERATIONS, on_loss=on_loss)
    world.happen(4, world.crash, 4)
    world.run()
    assert world.aborts == ["a part of the parameters is lost with its server"]


@pytest.mark.parametrize("system", [{"name": "baseline"}, {"name": "hop"}, {"name": "parameter_server"}], ids=str)
def test_on_loss_wait_waits(system):
    """Until the lost worker is back, no worker is more than a few iterations ahead, as its bound allows."""
    world = World(system, 4, noise, iterations=ITERATIONS, on_loss="wait")
    seen = {}
    for number in (1, 2):
        world.happen(4, world.crash, number)
    world.happen(60, lambda: seen.update({worker.setup.worker: worker.iteration for worker in world.present}))
    for number in (1, 2):
        world.happen(60, world.come, number)
    world.run()
    assert len(seen) == 2
    assert max(seen.values()) <= 6
    ends_well(world)


@pytest.mark.parametrize("system", [{"name": "baseline"}, {"name": "gaia"}, {"name": "dlion"}], ids=str)
def test_on_loss_abort_has_a_reason(system):
    world = World(system, 4, noise, iterations=ITERATIONS, on_loss="abort")
    crash(world)
    world.run()
    assert len(world.aborts) == 1
    assert "peer" in world.aborts[0]


NUMBER = st.integers(0, 3)
WHEN = st.floats(0, 30)
AWAY = st.floats(0, 15)
HAPPENINGS = st.lists(
    st.tuples(st.sampled_from(["crash", "leave", "notice", "part", "cloud"]), NUMBER, NUMBER, WHEN, AWAY),
    min_size=1,
    max_size=6,
)


def let_happen(world, happenings):
    """Schedule the given churn; in the end all workers are back."""
    for what, one, other, when, away in happenings:
        match what:
            case "crash" | "cloud":
                for number in {one, other} if what == "cloud" else {one}:
                    world.happen(when, world.crash, number)
                    world.happen(when + away, world.come, number)
            case "leave":
                world.happen(when, world.leave, one)
                world.happen(when + away, world.come, one)
            case "notice":
                world.happen(when, world.leave, one, away / 4)
                world.happen(when + away, world.come, one)
            case "part" if one != other and world.servers == 0:
                world.happen(when, world.part, one, other)
                world.happen(when + away, world.mend, one, other)
    for number in range(world.workers):
        world.happen(60, world.come, number)


@settings(max_examples=100, deadline=None)
@given(
    system=st.sampled_from(SYSTEMS),
    seed=st.integers(0, 2**16),
    happenings=HAPPENINGS,
    absent=st.sets(NUMBER, max_size=3),
    on_loss=st.sampled_from(["go_on", "wait"]),
    sponsor=st.sampled_from(["nearest", "least_loaded", "best"]),
    optimizer=st.sampled_from([{}, {"momentum": 0.9}, {"kind": "adam"}]),
)
def test_churn_never_stops_the_present_workers(system, seed, happenings, absent, on_loss, sponsor, optimizer):
    """And no contribution is applied twice."""
    world = World(
        system,
        4,
        noise,
        seed=seed,
        iterations=ITERATIONS,
        absent=sorted(absent),
        on_loss=on_loss,
        sponsor=sponsor,
        optimizer=optimizer,
    )
    let_happen(world, happenings)
    world.run()
    ends_well(world)
    assert len(world.present) == world.workers
    once = {}
    for log in world.logs:
        for iteration, applied in log.applied:
            for contribution in applied:
                assert once.setdefault((id(log), contribution), iteration) == iteration
