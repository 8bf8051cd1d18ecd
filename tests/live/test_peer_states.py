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
