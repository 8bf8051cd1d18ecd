"""What a node knows of the others."""

from dlion_sim.live.peer_states import PeerStates


def test_each_loss_is_news_and_only_who_has_not_returned_is_missing():
    states = PeerStates(0, 4, [1, 2], serves=False)
    assert states.lost(1, "died")
    assert states.missed(3)
    assert not states.missed(1)
    states.found(1)
    assert states.missing == {3: "so others say"}
    assert states.lost(1, "died again")
    assert not states.lost(1, "died again")
    assert states.missing == states.gone == {1: "died again", 3: "so others say"}
    assert list(states.gone) == [3, 1]


def test_a_loss_of_which_others_told_first_is_no_news():
    states = PeerStates(0, 3, [1, 2], serves=False)
    assert states.missed(1)
    assert not states.lost(1, "died")
    assert states.missing == {1: "died"}


def test_who_may_be_back_without_being_found_is_not_missing():
    states = PeerStates(0, 4, [1], out_of_sight={2, 3}, serves=False)
    assert states.missed(2)
    assert states.missed(1)
    assert states.missing == {1: "so others say"}
    assert states.gone == {2: "so others say", 1: "so others say"}
