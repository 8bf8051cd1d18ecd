"""The sources of the user's own code: a module's, and those of the modules beside it that it imports. A leaf."""

from __future__ import annotations

import ast
import os
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.util import resolve_name
from pathlib import Path

_OURS = os.path.realpath(Path(__file__).parent)
_INSTALLED = [os.path.realpath(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]


def is_ours(file: str | Path) -> bool:
    """Whether a file is this package's."""
    return _is_below(file, [_OURS])


def is_installed(file: str | Path) -> bool:
    """Whether a file is Python's, or of a package that is installed with it."""
    return _is_below(file, _INSTALLED)


def source_files(module: str, file: Path) -> list[Path]:
    """A module's file, and of what it imports, at any depth, those below the same root; in the order of names.

    The root is where Python would look to find the module. Imports are read, not followed by importing. What is
    imported by other means than `import` is not seen; nor what a module that is installed imports.
    """
    root = file.parents[module.count(".") + _is_package(file)]
    files = {module: file}
    unread = [] if is_installed(file) else [module]
    while unread:
        name = unread.pop()
        package = name if _is_package(files[name]) else name.rpartition(".")[0]
        for imported in (module, *_imports(files[name].read_bytes(), package)):
            for part in _packages(imported):
                source = None if part in files else _source(root, part)
                if source:
                    files[part] = source
                    unread.append(part)
    return [files[name] for name in sorted(files)]


@lru_cache(maxsize=1024)
def _imports(source: bytes, package: str) -> list[str]:
    """The names of all that may be modules among what a module in that package imports."""
    names: list[str] = []
    with suppress(SyntaxError, ValueError):  # A run will tell.
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                with suppress(ImportError):  # Beyond the topmost package.
                    base = resolve_name("." * node.level + (node.module or ""), package)
                    names += [f"{base}.{each.name}" for each in node.names]
    return names


def _packages(name: str) -> Iterator[str]:
    """The packages that a module is in, from the outermost, and itself."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _source(root: Path, name: str) -> Path | None:
    """The file of a module of the user's own, or of something that is none: then None."""
    place = root.joinpath(*name.split("."))
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if file.is_file():
            return None if is_ours(file) or is_installed(file) else file
    return None


def _is_package(file: Path) -> bool:
    return file.stem == "__init__"


def _is_below(file: str | Path, folders: list[str]) -> bool:
    return any(os.path.realpath(file).startswith(f"{folder}{os.sep}") for folder in folders)
