"""A device that behaves as a GPU does towards Python, and computes on the CPU: PyTorch's third-party device, in Python.

Its tensors are PyTorch's own, so that autograd, `torch.func`, views and storages work as on any device; their memory is
main memory under another device's name. It refuses what a GPU refuses, an operator over tensors here and on the CPU,
and what a GPU does at a price that nobody sees, an index that is copied there each time. It counts what crosses.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

NAME = "rehearsal"
DEVICE = torch.device("privateuseone", 0)
_AS_ON_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_PRODUCT = str(Path(__file__).parents[2] / "dlion_sim")


class RefusedError(RuntimeError):
    """Something that a GPU does not do, or only in a way that is to be seen."""


@dataclass(frozen=True)
class Crossing:
    """Something that the host waits for, or sends."""

    kind: str
    """to device, to host, or read: a value that the host goes on by."""
    operator: str
    nbytes: int
    place: str
    """The line and the function of the product that asked for it."""


@dataclass
class Machine:
    """What the device has done, and what it is doing."""

    crossings: list[Crossing] = field(default_factory=list)
    launched: Callable[[Any, list[Tensor], list[Tensor]], None] = lambda operator, reads, writes: None
    """Told of each operator before it is computed, with the tensors here that it reads and writes."""
    recorder: Any = None
    """The graph that is being recorded."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def cross(self, kind: str, operator: str, nbytes: int) -> None:
        """Count it. Raises RefusedError while a graph is being recorded."""
        if self.recorder is not None:
            raise RefusedError(f"{operator} while a graph is being recorded: the host would wait for it ({kind})")
        self.crossings.append(Crossing(kind, operator, nbytes, _place()))

    @contextmanager
    def counted(self) -> Iterator[list[Crossing]]:
        """What crosses meanwhile."""
        former, self.crossings = self.crossings, []
        try:
            yield self.crossings
        finally:
            self.crossings = [*former, *self.crossings]


MACHINE = Machine()


def adopt(host: Tensor) -> Tensor:
    """A tensor of the device that consists of the memory of one on the CPU."""
    return _within(_memory(host), host)


def _memory(host: Tensor) -> Any:
    memory = host.untyped_storage()
    storage: Any = torch._C._construct_storage_from_data_pointer(memory.data_ptr(), DEVICE, memory.nbytes())
    storage.host = memory  # kept for as long as PyTorch keeps the storage
    if MACHINE.recorder is not None:
        MACHINE.recorder.allocated(storage)
    return storage


def _within(storage: Any, like: Tensor) -> Tensor:
    return _move(torch._C._acc.create_empty_tensor([0], like.dtype), storage, like)


def _move(tensor: Tensor, storage: Any, like: Tensor) -> Tensor:
    place = like.storage_offset(), like.size(), like.stride()
    return torch.ops.aten.set_.source_Storage_storage_offset.redispatch(_AS_ON_CPU, tensor, storage, *place)


def host_of(tensor: Tensor) -> Tensor:
    """The tensor on the CPU that shares the memory of one of the device."""
    storage: Any = tensor.untyped_storage()
    place = tensor.storage_offset(), tensor.size(), tensor.stride()
    return torch.empty(0, dtype=tensor.dtype).set_(storage.host, *place)


def is_here(thing: object) -> bool:
    """Whether it is a tensor of the device."""
    return isinstance(thing, Tensor) and thing.device.type == NAME


def compute(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """Any operator: of tensors that are all here, on the CPU."""
    with MACHINE.lock:
        args = _with_numbers(operator, args)
        given, form = tree_flatten((args, kwargs))
        here = [each for each in given if is_here(each)]
        _check_places(operator, given)
        if operator._overloadpacket in _READING or (operator._overloadpacket in _INDEXING and _has_mask(args[1])):
            MACHINE.cross("read", str(operator), 0)
        writes = _written(operator, args, kwargs)
        MACHINE.launched(operator, here, writes)
        hosts = [host_of(each) if is_here(each) else _elsewhere(each) for each in given]
        host_args, host_kwargs = tree_unflatten(hosts, form)
        if MACHINE.recorder is not None:
            MACHINE.recorder.about_to_write(writes)
        answer = operator(*host_args, **host_kwargs)
        for tensor, host in zip(writes, _written(operator, host_args, host_kwargs), strict=True):
            if tensor.shape != host.shape:
                _move(tensor, _memory(host), host)
        memory = {each.untyped_storage().data_ptr(): each.untyped_storage() for each in here if each.nbytes}
        returned = _returned(operator, args, kwargs, answer, memory)
        if MACHINE.recorder is not None:
            MACHINE.recorder.step(operator, host_args, host_kwargs, answer, here, returned)
        return returned


def _returned(operator: Any, args: Any, kwargs: Any, answer: Any, memory: dict[int, Any]) -> Any:
    """What an operator's caller gets: what it gave to be written, a view of what it gave, or a new tensor."""

    def here(host: Tensor) -> Tensor:
        address = host.untyped_storage().data_ptr()
        return _within(memory[address], host) if address in memory else adopt(host)

    written = _by_alias(operator, args, kwargs)
    answers = answer if len(operator._schema.returns) > 1 else [answer]
    returned = [
        written[_alias(described)] if _alias(described) in written else tree_map_only(Tensor, here, each)
        for described, each in zip(operator._schema.returns, answers, strict=bool(operator._schema.returns))
    ]
    return tuple(returned) if len(returned) > 1 else returned[0] if returned else None


def _alias(described: Any) -> str | None:
    info = described.alias_info
    return next(iter(info.before_set)) if info is not None and info.is_write else None


def _by_alias(operator: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """By the schema's name for it, what is given to be written."""
    given = dict(zip((each.name for each in operator._schema.arguments), args, strict=False)) | kwargs
    return {
        alias: given[each.name]
        for each in operator._schema.arguments
        if (alias := _alias(each)) is not None and given.get(each.name) is not None
    }


def _written(operator: Any, args: Any, kwargs: Any) -> list[Tensor]:
    return [
        each for each in tree_flatten(list(_by_alias(operator, args, kwargs).values()))[0] if isinstance(each, Tensor)
    ]


def _check_places(operator: Any, given: list[Any]) -> None:
    """A number in main memory may go along with any operator; other tensors, and generators, may not."""
    for each in given:
        if isinstance(each, Tensor) and not is_here(each) and (each.dim() or operator._overloadpacket in _INDEXING):
            what = f"{list(each.shape)} {str(each.dtype).removeprefix('torch.')}"
            raise RefusedError(
                f"Expected all tensors to be on the same device, but {operator} got one on {NAME}:0 and {what} on "
                f"{each.device}"
            )
        if isinstance(each, torch.Generator):
            raise RefusedError(f"Expected a '{NAME}' device type for generator but found '{each.device.type}'")


def _with_numbers(operator: Any, args: Any) -> tuple[Any, ...]:
    """Tensors for numbers in their places: of `codes % 16`, PyTorch hands over the number."""
    declared = zip(operator._schema.arguments, args, strict=False)
    return tuple(
        torch.tensor(each) if str(kind.type) == "Tensor" and isinstance(each, (int, float)) else each
        for kind, each in declared
    )


def _elsewhere(thing: Any) -> Any:
    """What names the device names the CPU."""
    return torch.device("cpu") if isinstance(thing, torch.device) else thing


def _has_mask(indices: Any) -> bool:
    return any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in indices)


def _place() -> str:
    frame: Any = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith(_PRODUCT):
        frame = frame.f_back
    if frame is None:
        return "elsewhere"
    file = Path(frame.f_code.co_filename).relative_to(Path(_PRODUCT).parent)
    return f"{file}:{frame.f_lineno} {frame.f_code.co_name}"


aten = torch.ops.aten
_INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index}
_READING = {
    *(aten.nonzero, aten.masked_select, aten._unique2, aten.unique_dim, aten.unique_consecutive, aten.equal),
    *(aten.repeat_interleave, aten.bincount, aten.histc, aten.is_nonzero),
}
"""Operators whose results are as large as values tell, so that the host waits for these."""


def _empty(
    size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Tensor:
    return adopt(torch.empty(size, dtype=dtype, memory_format=memory_format or torch.contiguous_format))


def _empty_strided(
    size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Tensor:
    return adopt(torch.empty_strided(size, stride, dtype=dtype))


def _copy(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    if is_here(source) and is_here(target):
        return compute(aten.copy_.default, target, source)
    with MACHINE.lock:
        if is_here(source):
            MACHINE.cross("to host", "a copy", source.nbytes)
            MACHINE.launched(aten.copy_.default, [source], [])
            return target.copy_(host_of(source))
        MACHINE.cross("to device", "a copy", source.nbytes)
        MACHINE.launched(aten.copy_.default, [], [target])
        host_of(target).copy_(source)
    return target


def _item(tensor: Tensor) -> Any:
    with MACHINE.lock:
        MACHINE.cross("read", "a value", tensor.nbytes)
        MACHINE.launched(aten._local_scalar_dense.default, [tensor], [])
        return host_of(tensor).item()


def _resize(tensor: Tensor, size: Any, memory_format: Any = None) -> Tensor:
    like = host_of(tensor).resize_(size)
    return _move(tensor, _memory(like), like)


def _convolution(*args: Any) -> Any:
    return compute(aten.convolution.default, *args)


def _convolution_backward(gradient: Any, inputs: Any, weight: Any, *rest: Any) -> Any:
    *numbers, mask = rest
    return compute(aten.convolution_backward.default, gradient, inputs, weight, [weight.shape[0]], *numbers, mask)


def _looked_at(operator: Any) -> Callable[..., Any]:
    """Operators that only look at memory in another way, as PyTorch does without touching it."""
    return lambda *args, **kwargs: operator.redispatch(_AS_ON_CPU, *args, **kwargs)


def register(module: Any) -> list[torch.library.Library]:
    """Make the device known to PyTorch, with `module` as its `torch.cuda`: before the first gradient of the process."""
    torch.utils.backend_registration._setup_privateuseone_for_python_backend(NAME, module)
    fallback, own = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    fallback.fallback(compute, "PrivateUse1")
    looking = (
        *(aten.view.default, aten.as_strided.default, aten._reshape_alias.default, aten.unfold.default),
        *(aten.set_.source_Storage, aten.set_.source_Storage_storage_offset, aten.set_.source_Tensor),
    )
    kernels = {operator: _looked_at(operator) for operator in looking} | {
        aten.empty.memory_format: _empty,
        aten.empty_strided.default: _empty_strided,
        aten._copy_from.default: _copy,
        aten._local_scalar_dense.default: _item,
        aten.resize_.default: _resize,
        aten.convolution_overrideable.default: _convolution,
        aten.convolution_backward_overrideable.default: _convolution_backward,
    }
    # A GPU has kernels of its own for these, which PyTorch else puts together of others.
    kernels |= {
        operator: partial(compute, operator)
        for operator in (aten.native_group_norm.default, aten.native_layer_norm.default)
    }
    for operator, kernel in kernels.items():
        own.impl(operator, kernel, "PrivateUse1")
    return [fallback, own]
