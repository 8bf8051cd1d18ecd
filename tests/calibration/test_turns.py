"""Whose turn it is to measure."""

from __future__ import annotations

from itertools import chain, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.calibration.prober import one_by_one, tournament


@given(st.lists(st.integers(0, 12), min_size=2, max_size=13))
def test_each_ordered_pair_has_one_turn_and_no_machine_two_at_once(hosts: list[int]) -> None:
    rounds = list(tournament(hosts))
    assert sorted(chain(*rounds)) == sorted(permutations(range(len(hosts)), 2))
    for pairs in rounds:
        # Two nodes of one machine measure the path between them alone.
        busy = [{hosts[node] for node in pair} for pair in pairs]
        assert sum(map(len, busy)) == len(set().union(*busy))


@pytest.mark.parametrize(("nodes", "rounds"), [(2, 2), (4, 6), (5, 10), (30, 58)])
def test_nodes_on_machines_of_their_own_are_all_busy(nodes: int, rounds: int) -> None:
    assert len(list(tournament(range(nodes)))) == rounds


def test_by_default_one_pair_is_measured_after_another() -> None:
    assert list(one_by_one(3)) == [[(0, 1)], [(1, 0)], [(0, 2)], [(2, 0)], [(1, 2)], [(2, 1)]]
