"""Functions of tensors, as the operators that one call of each has made.

PyTorch's layers, and its search for derivatives, take longer than the operators of a tiny model, which are the same in
every call. Called one after another, with less Python in between, these give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

_PURE = (nn.Sequential, nn.Flatten, nn.Linear, nn.ReLU, nn.Tanh, nn.GELU, nn.LayerNorm, nn.Identity)
"""Layers that call the same operators whatever the values, without random numbers or a state."""


def is_recordable(model: nn.Module) -> bool:
    """Whether a call's operators depend on the shape of its input alone."""
    return all(type(module) in _PURE for module in model.modules())


def recorded(function: Callable[..., Sequence[Tensor]], *inputs: Tensor) -> Callable[..., Sequence[Tensor]]:
    """`function` for inputs of the shapes of these, without derivatives of what it returns.

    Its operators must not depend on values. Other tensors and numbers that it uses are constants.
    """
    function(*inputs)  # Constants that it caches are made now.
    recorder = _Recorder(inputs)
    with recorder:
        outputs = function(*inputs)
    program = recorder.program(outputs)

    def run(*inputs: Tensor) -> Sequence[Tensor]:
        with torch.no_grad():
            return program(*inputs)

    return run


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes a program of Python with a line for each operator that is called."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inputs = [f"input_{place}" for place in range(len(inputs))]
        self._lines: list[str] = []
        self._names: dict[int, str] = {}
        """The variable of each tensor, by its identity."""
        self._tensors: list[Tensor] = []
        """These tensors, kept so that no other one gets the identity of one."""
        self._constants: dict[str, Any] = {}
        for tensor, name in zip(inputs, self._inputs, strict=True):
            self._set_name(tensor, name)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Of PyTorch, which otherwise imports its compiler for the method below: a second."""
        return False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if function is torch.ops.aten.detach.default:  # only for derivatives
            self._set_name(result, self._written(args[0]))
            return result
        call = [self._written(each) for each in args] + [f"{name}={self._written(kwargs[name])}" for name in kwargs]
        line = f"{self._constant(function)}({', '.join(call)})"
        results, place = (result if isinstance(result, (tuple, list)) else [result]), len(self._lines)
        for number, tensor in enumerate(results):
            self._set_name(tensor, f"result_{place}_{number}")
        targets = ", ".join(f"result_{place}_{number}" for number in range(len(results)))
        self._lines.append(f"{targets}{',' * isinstance(result, (tuple, list))} = {line}")
        return result

    def program(self, outputs: Sequence[Tensor]) -> Callable[..., Sequence[Tensor]]:
        """The function of the inputs that calls all recorded operators and returns the outputs."""
        answer = f"return {', '.join(map(self._written, outputs))},"
        lines = "\n    ".join([f"def program({', '.join(self._inputs)}):", *self._lines, answer])
        exec(lines, self._constants)  # of names and literals alone
        made: Callable[..., Sequence[Tensor]] = self._constants["program"]
        return made

    def _set_name(self, tensor: Tensor, name: str) -> None:
        """Name the variable of a tensor."""
        self._names[id(tensor)] = name
        self._tensors.append(tensor)

    def _written(self, value: Any) -> str:
        """An argument as it is written in the program."""
        if isinstance(value, Tensor) and id(value) in self._names:
            return self._names[id(value)]
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._written, value))}]"
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        return self._constant(value)

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants[name] = value
        return name
