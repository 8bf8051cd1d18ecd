import pytest

from dlion_sim.emulation.shaping import FairQueues, MarkingQueues, OneQueue, reshape, shape
from dlion_sim.scenario import Packets


def words(command: str) -> list[str]:
    return command.split()


def after(word: str, command: list[str]) -> str:
    return command[command.index(word) + 1]


@pytest.mark.parametrize(
    ("bps", "burst", "queue"),
    [
        (10e6, 2 * 1514, 25_000),  # 20 ms of queue; 2 ms would be less than two frames
        (1e9, 250_000, 2_500_000),
        (100e3, 2 * 1514, 12 * 1514),
    ],
)
def test_the_bucket_is_short_and_so_is_its_queue(bps, burst, queue):
    (command,) = shape("h0-eth0", bps)
    assert after("dev", words(command)) == "h0-eth0"
    assert after("rate", words(command)) == f"{bps:.0f}bit"
    assert (after("burst", words(command)), after("limit", words(command))) == (str(burst), str(queue))


def test_a_change_names_the_same_bucket_and_replaces_nothing():
    for delay in (0.0, 0.03):
        bucket = words(shape("h0-eth0", 10e6, delay)[-1])
        changed = reshape("h0-eth0", 5e6, delay)
        assert (bucket[2], changed[2]) == ("replace", "change")
        assert changed[3 : changed.index("tbf")] == bucket[3 : bucket.index("tbf")]


def test_an_outage_is_a_trickle():
    assert after("rate", reshape("h0-eth0", 0.0)) == "8000bit"


def test_the_kernel_delays_ahead_of_the_bucket():
    delay, bucket = map(words, shape("r0-eth1", 10e6, 0.03))
    assert after("delay", delay) == "30000us"
    assert (after("handle", delay), after("parent", bucket)) == ("1:", "1:1")
    assert shape("r0-eth1", None, 0.03) == [" ".join(delay)]
    assert shape("r0-eth1", None) == []


def test_after_an_outage_with_many_flows_a_link_owes_next_to_nothing():
    """What each may send of its own goes on in an outage, and the link would pay for it afterwards."""
    flows = [(f"10.0.0.{number}", "10.1.0.1") for number in range(1, 17)]
    commands = [words(command) for command in shape("r0-eth1", 10e6, queues=FairQueues(flows))]
    _, *each = (after("rate", command) for command in commands if command[1:3] == ["class", "add"])
    outage = float(after("rate", words(FairQueues(flows).changed("r0-eth1", 0.0, "root"))).removesuffix("bit"))
    assert sum(float(rate.removesuffix("bit")) for rate in each) < outage / 2


def test_each_flow_and_its_weights_have_classes_that_borrow_from_the_whole_rate():
    flows = [("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "10.0.0.3")]
    commands = [words(command) for command in shape("h0-eth0", 10e6, queues=FairQueues(flows))]
    whole, short, *each = (command for command in commands if command[1:3] == ["class", "add"])
    assert (after("rate", whole), after("burst", whole)) == ("10000000bit", str(2 * 1514))
    assert [after("parent", command) for command in (short, *each)] == ["2:1"] * 5
    assert [after("prio", command) for command in (short, *each)] == ["0", *"1111"]
    filters = [command for command in commands if command[1] == "filter"]
    assert [(after("src", command), after("dst", command)) for command in filters[1:]] == [
        (f"{source}/32", f"{destination}/32") for source, destination in (*flows, *flows)
    ]
    # Weights are told apart first; all else of a pair, whatever its mark, is one flow.
    assert [(after("prio", command), "tos" in command) for command in filters[1:]] == [("3", False)] * 2 + [
        ("2", True)
    ] * 2
    assert {after("tos", command) for command in filters[3:]} == {"0x24"}
    assert [after("flowid", command) for command in filters] == [
        after("classid", command) for command in (short, *each)
    ]
    queues = [command for command in commands if "bfifo" in command]
    assert [after("limit", command) for command in queues] == ["25000", *[str(24 * 1514)] * 4]


def test_each_flows_queue_has_the_size_that_is_given():
    commands = shape("h0-eth0", 10e6, queues=FairQueues([("10.0.0.1", "10.0.0.2")], 30 * 1514))
    limits = [after("limit", words(command)) for command in commands if "bfifo" in command]
    assert limits == ["25000", *[str(30 * 1514)] * 2]


@pytest.mark.parametrize("delay", [0.0, 0.03])
def test_a_change_of_what_is_shared_fairly_is_of_the_whole_rate(delay):
    *delayed, root, whole = map(words, shape("h0-eth0", 10e6, delay, FairQueues([]))[: 3 if delay else 2])
    assert after("parent" if delayed else "dev", root) == ("1:1" if delayed else "h0-eth0")
    changed = reshape("h0-eth0", 5e6, delay, FairQueues([]))
    assert changed[:3] == ["tc", "class", "change"]
    assert after("classid", changed) == after("classid", whole)
    assert after("rate", changed) == "5000000bit"


def test_a_queue_of_a_given_size_has_it_at_any_rate():
    queue = OneQueue(30 * 1514)
    for command in (words(shape("s0-eth1", 10e6, queues=queue)[0]), reshape("s0-eth1", 1e9, 0.0, queue)):
        assert after("limit", command) == str(30 * 1514)


def test_priorities_have_queues_that_mark_what_can_be_marked_and_drop_the_rest():
    model = Packets(buffer="150 packets", drop_above="20 packets", mark_above="30 packets", priorities=3)
    bucket, bands, *each = map(words, shape("s0-eth1", 10e6, 0.03, MarkingQueues(model))[1:])
    assert (after("parent", bucket), after("handle", bucket)) == ("1:1", "2:")
    assert (after("parent", bands), after("bands", bands)) == ("2:1", "3")
    queues, filters = each[::2], each[1::2]
    assert [after("parent", queue) for queue in queues] == [after("flowid", each) for each in filters]
    # The highest priority, 0, is DSCP 3, and so on in steps of 4.
    assert [int(after("tos", each), 16) >> 2 for each in filters] == [3, 7, 11]
    for queue in queues:
        assert "ecn" in queue
        assert [after(word, queue) for word in ("limit", "min", "max")] == [str(n * 1514) for n in (150, 20, 21)]
    changed = reshape("s0-eth1", 5e6, 0.03, MarkingQueues(model))
    assert changed[1:3] == ["qdisc", "change"]
    assert (after("rate", changed), after("limit", changed)) == ("5000000bit", str(150 * 1514))


def test_queues_without_thresholds_only_drop_what_does_not_fit():
    model = Packets(buffer="30 packets", drop_above="30 packets", mark_above="30 packets", priorities=1)
    assert "tc qdisc add dev s0-eth1 parent 3:1 bfifo limit 45420" in shape(
        "s0-eth1", 10e6, queues=MarkingQueues(model)
    )
