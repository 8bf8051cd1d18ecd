"""Faults put into the product's own text, for as long as a test runs."""

import inspect
import textwrap


def plant(monkeypatch, module, name, text, replacement):
    """Make a function of a module, or "Class.method", be what it were with `replacement` in the place of `text`."""
    owner, _, last = name.rpartition(".")
    place = getattr(module, owner) if owner else module
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(place, last))))
    assert text in source, f"{module.__name__}.{name} has no {text!r}"
    made = {}
    exec(compile(source.replace(text, replacement), inspect.getfile(module), "exec"), vars(module), made)
    monkeypatch.setattr(place, last, made[last])
