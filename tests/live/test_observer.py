"""What is kept of a participant on its node."""

from contextlib import closing
from types import SimpleNamespace

import pytest

from dlion_sim.assembly import Recorder, Setting
from dlion_sim.live.member import Member
from dlion_sim.live.observer import Observer
from dlion_sim.results import RunWriter
from tests.simulation.scenarios import digits

MANIFEST = {"scenario": "s", "system": "baseline", "seed": 1}
NOTHING = SimpleNamespace(under_way=lambda: iter(()))


@pytest.fixture
def observer(tmp_path):
    recorder = Recorder(RunWriter.create(tmp_path / "run", scenario_yaml="", manifest=MANIFEST), [0])
    with closing(Member.of(Setting.of(digits()), 0, paced=True)) as member:
        yield Observer(0, member.participant, recorder, {0}, tmp_path, evaluated=True)


def test_a_moment_before_it_joined_is_not_its_own_even_if_its_node_comes_to_it_later(observer):
    observer.member_since = 0.81
    for moment in (0.6, 0.8, 1.0):
        observer.observe(NOTHING, moment)
    assert [each.time for each in observer.snapshots] == [1.0]


def test_of_two_snapshots_of_one_moment_the_last_one_counts(observer):
    observer.observe(NOTHING, 0.2)
    observer.observe(NOTHING, 0.2)
    assert [each.time for each in observer.snapshots] == [0.2]
