"""The arrays of compiled code, which grow outside of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dlion_sim.addresses import locate
from dlion_sim.simulation.packets.state import ARRAYS, LONGEST_PATH, NONE, PIECES

_LEAST, _LEAST_PACKETS = 64, 1024


class Memory:
    """Arrays of records by name, each with a number of used records.

    `at` is the argument of compiled functions, until an array grows.
    """

    def __init__(self) -> None:
        self._arrays = {name: _array(name, 0) for name in ARRAYS}
        self._used = dict.fromkeys(ARRAYS, 0)
        self._locate()

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """All records, used or not."""
        return self._arrays[name]

    def used(self, name: str) -> int:
        return self._used[name]

    def take(self, name: str, count: int = 1) -> int:
        """Use `count` more records; returns the number of the first."""
        first = self._used[name]
        self.reserve(name, first + count)
        self._used[name] += count
        return first

    def reserve(self, name: str, count: int) -> None:
        """Make room for at least so many records."""
        array = self._arrays[name]
        if count > len(array):
            longer = _array(name, max(count, 2 * len(array), _LEAST))
            longer[: len(array)] = array
            self._arrays[name] = longer
            self._locate()

    def more_packets(self) -> None:
        """Double the number of packets; the new ones are free."""
        had, state = self.used("packets"), self["state"][0]
        more = max(_LEAST_PACKETS, had)
        self.take("packets", more)
        following = np.arange(had + 1, had + more + 1)
        following[-1] = state["next_free"]
        self["packets"]["next"][had : had + more] = following
        state["next_free"] = had
        state["free"] += more

    def more_segments(self, connection: int) -> None:
        """Double the room of a connection for segments."""
        record = self["connections"][connection]
        old, room = int(record["slots"]), int(record["room"])
        new = self.take("slots", 2 * room)
        segments = np.arange(record["acknowledged"], record["next"])
        slots = self["slots"]
        slots[new + (segments & (2 * room - 1))] = slots[old + (segments & (room - 1))]
        record["slots"], record["room"] = new, 2 * room

    def room_for_pieces(self, connection: int, count: int, groups: int) -> None:
        """Make room for a message of `count` packets in `groups` groups."""
        record = self["connections"][connection]
        if count > record["count_room"]:
            record["pieces"], record["count_room"] = self.take(PIECES[0], count), count
            for name in PIECES:
                self.reserve(name, self.used(PIECES[0]))
        if groups > record["group_count_room"]:
            record["groups"], record["group_count_room"] = self.take("missing", groups), groups
            self.reserve("allowed", self.used("missing"))
        record["count"], record["group_count"] = count, groups

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("at", "_located")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises ValueError for arrays of a checkpoint with other types or lengths."""
        self.__dict__.update(state)
        for name in ARRAYS:
            array, alike = self._arrays[name], _array(name, 0)
            fits = type(array) is np.ndarray and array.dtype == alike.dtype and array.shape[1:] == alike.shape[1:]
            if not fits or not array.flags.carray or not 0 <= self._used[name] <= len(array):
                raise ValueError(f"{name} of packets are no {alike.dtype}")
        if [*self._arrays] != [*ARRAYS]:
            raise ValueError("there are other arrays of packets")
        self._locate()

    def _locate(self) -> None:
        self._located: npt.NDArray[np.int64] = locate(*self._arrays.values())
        self.at: int = self._located.ctypes.data


def _array(name: str, count: int) -> npt.NDArray[Any]:
    if name == "paths":
        return np.full((count, LONGEST_PATH + 1), NONE, np.int32)
    return np.zeros(count, ARRAYS[name])
