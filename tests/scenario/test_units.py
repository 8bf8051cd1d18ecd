from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.scenario import BANDWIDTH, CORES, DURATION, QUEUE, SIZE, Unit

UNITS = [DURATION, BANDWIDTH, CORES, SIZE, QUEUE]


@pytest.mark.parametrize(
    ("unit", "text", "value"),
    [
        (DURATION, "80 ms", 0.08),
        (DURATION, "0.3ms", 0.0003),
        (DURATION, "0.5 s", 0.5),
        (DURATION, "2 min", 120.0),
        (DURATION, "1 h", 3600.0),
        (DURATION, "10 us", 1e-5),
        (DURATION, " 7  s ", 7.0),
        (DURATION, 0, 0.0),
        (BANDWIDTH, "0", 0.0),
        (DURATION, "1e3 s", 1000.0),
        (BANDWIDTH, "50 Mbps", 50e6),
        (BANDWIDTH, "50 Mbit/s", 50e6),
        (BANDWIDTH, "1.5 Gbps", 1.5e9),
        (BANDWIDTH, "2 MB/s", 16e6),
        (BANDWIDTH, "0 bps", 0.0),
        (CORES, "24 cores", 24.0),
        (CORES, "1 core", 1.0),
        (CORES, 0.5, 0.5),
        (SIZE, "3 MiB", 3 * 1024**2),
        (SIZE, "1.5 kB", 1500.0),
        (QUEUE, "1.5 kB", 1500.0),
        (QUEUE, "30 packets", 45_420.0),
        (QUEUE, "1 packet", 1514.0),
    ],
)
def test_reads(unit: Unit, text: object, value: float) -> None:
    assert unit.parse(text) == value


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (DURATION, 1500.0, "1500 s"),
        (DURATION, 0.0005, "500 us"),
        (DURATION, 0.08785, "87.85 ms"),
        (DURATION, 0.0, "0 s"),
        (BANDWIDTH, 1e9, "1 Gbps"),
        (BANDWIDTH, 890990.0, "890.99 kbps"),
        (CORES, 5040.0, "5040 cores"),
        (SIZE, 65536.0, "64 KiB"),
    ],
)
def test_writes(unit: Unit, value: float, text: str) -> None:
    assert unit.format(value) == text


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.quantity)
@given(part=st.floats(min_value=0, max_value=1))
def test_writing_then_reading_is_exact(unit: Unit, part: float) -> None:
    value = part * unit.most
    assert unit.parse(unit.format(value)) == value


@pytest.mark.parametrize(
    ("unit", "text", "words"),
    [
        (BANDWIDTH, "50 Mb", "'50 Mb' is not a bandwidth; write e.g. '50 Mbps' (units: bps, kbps, Mbps, Gbps,"),
        (BANDWIDTH, 50, "50 is not a bandwidth"),
        (DURATION, 100, "100 is not a duration; write e.g. '80 ms' (units: us, ms, s, min, h, d)"),
        (DURATION, "100", "'100' is not a duration"),
        (DURATION, "200000 d", "at most 10000000000 s"),
        (DURATION, "7 s s", "not a duration"),
        (DURATION, "1e9999 s", "not a duration"),
        (BANDWIDTH, "-1 Mbps", "negative"),
        (BANDWIDTH, "1e9 Gbps", "at most 1000000 Gbps"),
        (CORES, 1e300, "at most 1000000000 cores"),
        (DURATION, float("nan"), "not a finite"),
        (DURATION, float("inf"), "not a finite"),
        (DURATION, "inf s", "not a finite"),
        (DURATION, "1e999 s", "not a finite"),
        (DURATION, True, "not a duration"),
        (DURATION, None, "not a duration"),
        (CORES, "24 kores", "not a number of cores"),
        (BANDWIDTH, "10 GBps", "'10 GBps' is not a bandwidth: 'GBps' is not a unit, write GB/s"),
        (BANDWIDTH, "10 MBps", "'MBps' is not a unit, write MB/s"),
        (BANDWIDTH, "10 mbps", "'mbps' is not a unit, write Mbps"),
        (BANDWIDTH, "10 Mb/s", "'Mb/s' is not a unit, write Mbps"),
        (DURATION, "10 S", "'S' is not a unit, write s"),
    ],
)
def test_refuses(unit: Unit, text: object, words: str) -> None:
    with pytest.raises(ValueError, match="is") as refusal:
        unit.parse(text)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["1" * 2000, "1" * 2000 + " x y", "1" + " " * 5000 + "x", "1." * 3000, " " * 10**6 + "s"]
)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.quantity)
def test_long_quantities_are_refused_quickly_in_a_short_line(unit: Unit, text: str) -> None:
    """Not after a time that grows with the cube of its length: that would be hours."""
    with pytest.raises(ValueError, match="is not a") as refusal:
        unit.parse(text)
    assert len(str(refusal.value)) < 300
