"""What freed memory costs when it is used again."""

import platform
import subprocess
import sys

import pytest
import torch

from dlion_sim.learning.flat import copied

PROGRAM = """
import resource, sys
import torch
from contextlib import nullcontext
from dlion_sim.learning.process import kept_memory

def use():
    for size in (1, 5, 3, 8, 2, 13):
        torch.empty(size * 2**18).fill_(1.0)

with kept_memory() if sys.argv[1] == "kept" else nullcontext():
    use()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        use()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

REPLACED = """
import torch
from dlion_sim.learning.flat import copied

def megabytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1000

first = torch.zeros(9802)
before = megabytes()
many = [copied(first) for _ in range(3000)]
full = megabytes()
for _ in range(3):
    for place, former in enumerate(many):
        many[place] = copied(former)
print(full - before, megabytes() - before)
"""

AFTERWARDS = """
import torch
from contextlib import closing
from torch import nn
from dlion_sim.learning.pool import ModelPool

def megabytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1000

device, model = torch.device("cpu"), nn.Linear(512, 512)
one, other = ModelPool(model, device), ModelPool(model, device)
parts = [torch.ones(2**21) for _ in range(25)]
del parts
before = megabytes()
one.close()
still = before - megabytes() < 100
other.close()
print(still, before - megabytes() > 150)
"""
HOLES = """
import sys
import torch
from torch import nn
from dlion_sim.learning.flat import copied
from dlion_sim.learning.pool import ModelPool

def megabytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1000

width = int(sys.argv[1])
pool = ModelPool(nn.Linear(width, width), torch.device("cpu"))
before, kept = megabytes(), []
for _ in range(25):
    temporary = torch.ones(2**20)
    kept.append(copied(torch.ones(1000)))
    del temporary
    larger = torch.ones(2**20 + 2**18 * len(kept))
    kept.append(copied(torch.ones(1000)))
    del larger
print(megabytes() - before)
pool.close()
"""
needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")


def printed(program: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def new_pages(how: str) -> int:
    """That the system had to provide for tensors of 1 to 13 MB, one after another, after the first of each size."""
    return int(printed(PROGRAM, how))


@needs_glibc
def test_freed_memory_is_returned_after_the_block():
    assert printed(AFTERWARDS).split() == ["True", "True"]


@needs_glibc
def test_memory_that_was_freed_is_used_again():
    assert new_pages("kept") < 100 < 1000 < new_pages("given back")


@needs_glibc
def test_tensors_of_tiny_models_leave_no_holes_between_what_stays():
    """Each larger than all before, so that none fits where one was."""
    tiny, other = (int(printed(HOLES, width)) for width in ("10", "512"))
    assert tiny < 20 < 100 < other


@needs_glibc
def test_copies_that_replace_others_take_no_more_memory():
    full, later = map(int, printed(REPLACED).split())
    assert 100 < full < 140
    assert later < 1.1 * full


def test_a_copy_is_aligned_as_torchs_own_tensors():
    vector = torch.randn(9801)
    for _ in range(20):
        copy = copied(vector)
        assert torch.equal(copy, vector)
        assert copy.data_ptr() % 64 == 0
        assert copy.is_contiguous()
