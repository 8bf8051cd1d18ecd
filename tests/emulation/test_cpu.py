"""Parts of this machine's CPU: how it is divided, and what the kernel is told, in hierarchies of both versions."""

import os

import pytest

from dlion_sim.emulation import cpu, emulate
from dlion_sim.emulation.cpu import processors, remove_groups
from dlion_sim.errors import InputError
from tests.simulation.scenarios import digits


def cluster(*cores):
    workers = [{"compute": each if isinstance(each, dict) else f"{each} cores"} for each in cores]
    return digits(cluster={"clouds": [{"name": "a", "workers": workers}]}).cluster


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A hierarchy of version 1, on a machine of two cores."""
    return mounted(tmp_path, monkeypatch, f"cgroup {tmp_path} cgroup rw,relatime,cpu,cpuacct 0 0")


@pytest.fixture
def unified(tmp_path, monkeypatch):
    """One of version 2."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    (tmp_path / "cgroup.subtree_control").touch()
    return mounted(tmp_path, monkeypatch, f"cgroup2 {tmp_path} cgroup2 rw 0 0")


def mounted(root, monkeypatch, line):
    mounts = root / "mounts"
    mounts.write_text(f"proc /proc proc rw 0 0\ncgroup /elsewhere cgroup rw,cpuset 0 0\n{line}\n")
    monkeypatch.setattr(cpu, "_MOUNTS", mounts)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return root


@pytest.mark.parametrize(
    ("cores", "shares"),
    [
        ([4, 4, 8], [0.5, 0.5, 1]),
        ([1, 3], [1 / 3, 1]),  # 1.5 would be more than a node can use.
        ([1, 1, 1, 1], [0.5] * 4),
        ([4, {"steps": {"0 s": "4 cores", "1 s": "16 cores"}}], [0.25, 0.25]),
    ],
)
def test_the_cores_of_this_machine_are_divided_as_the_scenarios(old, cores, shares):
    assert [each.share for each in processors(cluster(*cores), "x")] == pytest.approx(shares)


def test_schedules_become_quotas(old):
    (only,) = processors(cluster({"steps": {"0 s": "10 cores", "1 s": "1 core", "2 s": "0 cores"}}), "x")
    assert list(only.changes()) == [(0, 10), (1, 1), (2, 0)]
    for cores, quota, period in [(10, 5000, 5000), (4, 2000, 5000), (1, 1000, 10000), (0, 1000, 100000)]:
        only.set(cores)
        assert (only.group / "cpu.cfs_quota_us").read_text() == str(quota)
        assert (only.group / "cpu.cfs_period_us").read_text() == str(period)


def test_where_there_is_only_version_2_both_go_into_one_file(unified):
    first, _ = processors(cluster(1, 3), "x")
    assert (unified / "cgroup.subtree_control").read_text() == "+cpu"
    (first.group / "cpu.max").touch()  # As the kernel does.
    first.set(1)
    assert (first.group / "cpu.max").read_text() == "1667 5000"


def test_groups_of_one_emulation_are_removed(old):
    mine, other = (processors(cluster(1, 3), name) for name in ("x", "y"))
    remove_groups("x")
    assert not any(each.group.exists() for each in mine)
    assert all(each.group.exists() for each in other)


def test_what_the_kernel_refuses_is_told(old):
    first, _ = processors(cluster(1, 3), "x")
    (first.group / "cpu.cfs_period_us").mkdir()
    with pytest.raises(InputError, match="cannot limit the CPU of hosts: Is a directory"):
        first.set(1)


def test_machines_that_are_parts_of_a_cpu_do_not_compute_on_a_gpu(tmp_path):
    with pytest.raises(InputError, match="machines without pacing are parts of this one's CPU"):
        emulate(digits(), tmp_path / "run", device="cuda", paced=False)
    assert not (tmp_path / "run").exists()
