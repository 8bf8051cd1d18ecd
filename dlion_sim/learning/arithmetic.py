"""What determines a process's rounding, apart from the versions of its software."""

from __future__ import annotations

import os
import platform
from typing import Any

import torch
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

from dlion_sim.learning.accelerator import is_accelerator, name_of

_CHOOSING = (
    *("DNNL_DEFAULT_FPMATH_MODE", "DNNL_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA"),
    *("MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "OPENBLAS_CORETYPE"),
    *("NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES"),
    *("NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_DISABLE_JIT", "NUMBA_OPT"),
    *("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE"),
)
"""Environment variables by which libraries select their arithmetic. PyTorch's own can be read from it."""


def arithmetic(device: torch.device) -> dict[str, str]:
    """All on which the bits of results of this process on `device` depend, by name.

    Not the number of threads: no operator is split among them.
    """
    backends = torch.backends
    names = {
        "cpu": get_host_cpu_name(),
        "cpu_capability": backends.cpu.get_cpu_capability(),
        "vector_lanes": "16" if get_host_cpu_features().get("avx512f") else "8",  # of compiled convolutions
        "libc": " ".join(platform.libc_ver()) or platform.system(),
        "denormals": "kept" if (torch.tensor(1e-40) * 1.0).item() else "flushed",
        "default_dtype": str(torch.get_default_dtype()),
        "onednn": _onednn(),
        **{name: os.environ[name] for name in _CHOOSING if name in os.environ},
    }
    if is_accelerator(device):
        names |= {
            "gpu": name_of(device),
            "cuda": str(torch.version.cuda),
            "cudnn": str(backends.cudnn.version()),  # type: ignore[no-untyped-call]
        }
    return names


def _onednn() -> str:
    """Whether it is used, and the precision of its products."""
    onednn: Any = torch.backends.mkldnn
    if not (onednn.is_available() and onednn.enabled):
        return "unused"
    if not hasattr(onednn, "matmul"):  # before torch 2.9
        return torch.get_float32_matmul_precision()
    return f"{onednn.matmul.fp32_precision}, {onednn.conv.fp32_precision}"
