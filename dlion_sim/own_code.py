"""The user's own code, named in a scenario as `package.module:name`. A leaf: everything may import it."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from dlion_sim.errors import InputError, OwnCodeError, did_you_mean
from dlion_sim.own_sources import is_installed, is_ours, source_files

_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_added: list[str] = []
"""What stands in `sys.path` for the reference that was looked up last."""


def is_reference(name: str) -> bool:
    """Whether a name refers to something of the user's own."""
    return ":" in name


def module_of(reference: str) -> str:
    """The name of the module that a reference is to."""
    return reference.partition(":")[0]


def digest(module: str) -> str:
    """Of the sources of a module that was imported and of what it imports from beside it; empty where there is none."""
    return _digest(module, getattr(sys.modules[module], "__file__", None))


def source_digest(reference: str, folder: str | None = None) -> str:
    """The same of the module that `referenced` would import, which is not imported here."""
    places = [*(place for place in sys.path if place not in _added), *([folder] if folder else []), str(Path.cwd())]
    parts = module_of(reference).split(".")
    path: list[str] | None = None
    spec: ModuleSpec | None = None
    for count, part in enumerate(parts, start=1):
        name = ".".join(parts[:count])
        found = (
            # By the last part only, as it looks up the package of a longer name, which is not imported.
            PathFinder.find_spec(part, places) if finder is PathFinder else finder.find_spec(name, path)
            for finder in sys.meta_path
        )
        spec = next(filter(None, found), None)
        places = path = list(spec.submodule_search_locations or []) if spec else []
    return _digest(module_of(reference), spec.origin if spec and spec.has_location else None)


def _digest(module: str, file: str | None) -> str:
    if not file:
        return ""
    sources = filter(None, (source.read_bytes() for source in source_files(module, Path(file))))
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:16]


def referenced(reference: str, path: str, folder: str | None = None) -> object:
    """What `package.module:Name` refers to; where Python finds no such module, in `folder` or the current one.

    Raises InputError, with the `path` inside the scenario, where there is no such thing, and OwnCodeError where the
    module cannot be imported for what stands in it.
    """
    module, name = module_of(reference), reference.partition(":")[2]
    places = list(dict.fromkeys([*([folder] if folder else []), str(Path.cwd())]))
    _look_last_in(places)
    _check_found_here(reference, path)
    try:
        imported = importlib.import_module(module)
    except Exception as error:
        if own := _own_error(error, {path: reference}):
            raise own from error
        allowed = f"a module in {' or '.join(places)}, or wherever Python finds modules"
        raise InputError(f"'{reference}' cannot be found: {error}", path=path, allowed=allowed) from error
    if not hasattr(imported, name):
        near = did_you_mean(name, [each for each in vars(imported) if not each.startswith("_")])
        raise InputError(f"'{reference}' cannot be found: {module} has no '{name}'{near}", path=path)
    found: object = getattr(imported, name)
    return found


def function(reference: str, path: str, most: int = 0, folder: str | None = None) -> Callable[..., object]:
    """The function that is referred to, to be called with `most` arguments, of which it gets as many as it needs.

    Raises InputError, with the `path` inside the scenario, where there is none or it needs more; and OwnCodeError as
    `referenced`.
    """
    found = referenced(reference, path, folder)
    allowed = f"a function of {most} argument{'s' * (most > 1)} or none" if most else "a function without arguments"
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        raise InputError(f"'{reference}' is a {type(found).__name__}", path=path, allowed=allowed)
    try:
        parameters = inspect.signature(found).parameters.values()
    except ValueError:
        raise InputError(f"'{reference}' does not tell its arguments", path=path, allowed=allowed) from None
    needed = [each for each in parameters if each.default is each.empty and each.kind not in _ANY_NUMBER]
    if len(needed) > most or any(each.kind is each.KEYWORD_ONLY for each in needed):
        names = ", ".join(each.name for each in needed)
        raise InputError(f"'{reference}' needs {names}", path=path, allowed=allowed)
    return lambda *offered: found(*offered[: len(needed)])


@contextmanager
def own_errors_told(references: Mapping[str, str]) -> Iterator[None]:
    """Raise what comes out of the code of these references, by path, as OwnCodeError, and anything else as it is."""
    try:
        yield
    except (InputError, OwnCodeError):
        raise
    except Exception as error:
        if own := _own_error(error, references):
            raise own from error
        raise


def raised_in(error: Exception, references: Mapping[str, str]) -> bool:
    """Whether the code of these references, by path, was running when the error came up."""
    return _own_error(error, references) is not None


def _look_last_in(places: Sequence[str]) -> None:
    """Have Python look there for what it finds nowhere else, and no more where it was to look last before."""
    sys.path[:] = [place for place in sys.path if place not in _added]
    _added[:] = [place for place in places if place not in sys.path]
    sys.path += _added


def _check_found_here(reference: str, path: str) -> None:
    """Raise InputError where the name is taken by a module from elsewhere, which was imported for another scenario."""
    name = module_of(reference).partition(".")[0]
    taken = getattr(sys.modules.get(name), "__spec__", None)
    if taken is None or not taken.has_location:
        return
    found = next(filter(None, (finder.find_spec(name, None) for finder in sys.meta_path)), None)
    if found is None or found.origin != taken.origin:
        problem = f"'{reference}' cannot be had beside the '{name}' of another scenario, {taken.origin}"
        raise InputError(problem, path=path, allowed="another name, or a process of its own")


def _own_error(error: Exception, references: Mapping[str, str]) -> OwnCodeError | None:
    """The error as one of the user's own code; None if none of that was running."""
    modules = {path: sys.modules.get(module_of(reference)) for path, reference in references.items()}
    files = {path: os.path.realpath(getattr(module, "__file__", None) or "") for path, module in modules.items()}
    frames = traceback.extract_tb(error.__traceback__)
    inside = next((number for number, frame in enumerate(frames) if is_ours(frame.filename)), len(frames))
    own = [frame for frame in frames[inside:] if _is_own(frame.filename, files.values())]
    if not references or not (own or isinstance(error, SyntaxError)):
        return None
    named = [path for path, file in files.items() if file in {os.path.realpath(frame.filename) for frame in own}]
    keys = ", ".join(f"{path} ({references[path]})" for path in named or references)
    last = own[-1] if own else None
    where = f" in {last.filename}, line {last.lineno}, in {last.name}" if last else ""
    problem = f"{keys}: {type(error).__name__}{where}: {error}"
    shown = [*traceback.format_list(own), *traceback.format_exception_only(error)]
    return OwnCodeError(" ".join(problem.split()), "".join(shown).rstrip())


def _is_own(file: str, named: Collection[str]) -> bool:
    return os.path.realpath(file) in named or not (file.startswith("<") or is_ours(file) or is_installed(file))
