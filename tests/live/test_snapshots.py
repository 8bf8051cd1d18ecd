"""Parameters over time, on disk."""

from contextlib import closing

import torch

from dlion_sim.live.snapshots import Snapshots


def test_parameters_come_back_in_order_of_time(tmp_path):
    with closing(Snapshots(tmp_path)) as snapshots:
        assert list(snapshots) == []
        parameters = torch.tensor([1.0, 2.0, 3.0])
        for time in (0.0, 0.2, 0.2, 0.4):
            snapshots.add(time, int(10 * time), parameters)
            parameters += 1  # what follows does not change them
        assert len(snapshots) == 3
        assert [(each.time, each.iteration, each.parameters.tolist()) for each in snapshots] == [
            (0.0, 0, [1, 2, 3]),
            (0.2, 2, [3, 4, 5]),  # the last one of that time
            (0.4, 4, [4, 5, 6]),
        ]
        assert list(tmp_path.iterdir()) == [], "nothing is left behind by a kill"
