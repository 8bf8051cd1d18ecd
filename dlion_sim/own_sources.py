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

_KINDS = ("stdlib", "platstdlib", "purelib", "platlib")
_OURS = os.path.realpath(Path(__file__).parent)
_USER = sysconfig.get_paths(sysconfig.get_preferred_scheme("user"))
_INSTALLED = [os.path.realpath(paths[kind]) for paths in (sysconfig.get_paths(), _USER) for kind in _KINDS]


def is_ours(file: str | Path) -> bool:
    """Whether a file is this package's."""
    return _is_below(file, [_OURS])


def is_installed(file: str | Path) -> bool:
    """Whether a file is Python's, or of a package that is installed with it."""
    return _is_below(file, _INSTALLED)


def source_files(module: str, file: Path) -> list[Path]:
    """The files of a module and of the modules below the same root that it imports, at any depth; ordered by name.

    The root is the folder from which the module is imported. Files are read, and nothing is imported, so that only
    `import` statements are seen. An installed module, which may import hundreds, is its own file alone.
    """
    if is_installed(file):
        return [file]
    root = Path(*file.parts[: -1 - module.count(".") - _is_package(file)])
    files = {module: file}
    unread = [module]
    while unread:
        name = unread.pop()
        for imported in _imports(files[name].read_bytes(), name, _is_package(files[name])):
            source = None if imported in files else _source(root, imported)
            if source:
                files[imported] = source
                unread.append(imported)
    return [files[name] for name in sorted(files)]


@lru_cache(maxsize=1024)
def _imports(source: bytes, module: str, is_package: bool) -> list[str]:
    """Names of a module, of what it imports, and of the packages of these; some are not of modules."""
    names = [module]
    with suppress(SyntaxError, ValueError):  # A run will tell.
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                with suppress(ImportError):  # Beyond the topmost package.
                    package = module if is_package else module.rpartition(".")[0]
                    base = resolve_name("." * node.level + (node.module or ""), package)
                    names += [f"{base}.{each.name}" for each in node.names]
    return list(dict.fromkeys(part for name in names for part in _packages(name)))


def _packages(name: str) -> Iterator[str]:
    """The packages that a module is in, from the outermost, and itself."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _source(root: Path, name: str) -> Path | None:
    """The file of a module of the user's own; None if the name is of anything else."""
    place = root.joinpath(*name.split("."))
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if file.is_file():
            return None if is_ours(file) or is_installed(file) else file
    return None


def _is_package(file: Path) -> bool:
    return file.stem == "__init__"


def _is_below(file: str | Path, folders: list[str]) -> bool:
    return any(os.path.realpath(file).startswith(f"{folder}{os.sep}") for folder in folders)
