"""What freed memory costs when it is used again."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import torch
from dlion_sim.learning.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()

def use():
    for size in (1, 5, 3, 8, 2, 13):
        torch.empty(size * 2**18).fill_(1.0)

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def new_pages(how: str) -> int:
    """That the system had to provide for tensors of 1 to 13 MB, one after another, after the first of each size."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_memory_that_was_freed_is_used_again():
    assert new_pages("kept") < 100 < 1000 < new_pages("given back")
