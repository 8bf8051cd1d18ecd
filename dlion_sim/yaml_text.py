"""YAML as scenarios and run folders use it: the plain types of YAML 1.2 and no key given twice.

PyYAML reads YAML 1.1, in which `1e-3` is text, `off` is false, `1:30` is ninety, and the last of two equal keys wins.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import yaml

from dlion_sim.errors import InputError
from dlion_sim.files import read_bytes

MOST_BYTES = 4_000_000
"""Of a file; reading YAML takes some ten seconds a megabyte."""
_MERGE = "tag:yaml.org,2002:merge"
_MOST_REPEATED = 100_000
"""Values that all of a document's aliases may repeat; aliases of aliases would multiply them at each level."""

_PLAIN_TYPES = (
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    (_MERGE, r"<<", "<"),
)
_PATTERNS = {tag: re.compile(f"(?:{pattern})\\Z") for tag, pattern, _ in _PLAIN_TYPES}
_TAGS = (*_PATTERNS, *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")), None)
"""Tags that may be written, as in `!!str 5`; None has PyYAML's error for all others."""


class _Reader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own interface)
    yaml_constructors: ClassVar[dict[Any, Any]] = {
        tag: constructor for tag, constructor in yaml.SafeLoader.yaml_constructors.items() if tag in _TAGS
    }

    def get_single_node(self) -> yaml.Node | None:
        """The document, whose every value its tag and its aliases allow, and whose keys are given once."""
        document: yaml.Node | None = super().get_single_node()
        if document is not None:
            sizes: dict[yaml.Node, int | None] = {}
            if _size(document, sizes) - len(sizes) > _MOST_REPEATED:
                raise yaml.constructor.ConstructorError(None, None, f"aliases repeat more than {_MOST_REPEATED} values")
        return document

    def construct_int(self, node: yaml.ScalarNode) -> int:
        """In decimal, also with leading zeros, which are octal for PyYAML."""
        written = self.construct_scalar(node)
        try:
            return int(written)
        except ValueError:
            problem = f"a number of {len(written)} digits is too long"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


class _Writer(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


def _size(node: yaml.Node, sizes: dict[yaml.Node, int | None]) -> int:
    """The number of values in a node, as often as aliases repeat them; None in `sizes` while it is counted."""
    if node in sizes:
        if (known := sizes[node]) is None:
            raise yaml.constructor.ConstructorError(None, None, "it holds itself by an alias", node.start_mark)
        return known
    sizes[node] = None
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
        inner = [*chain.from_iterable(node.value)]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    elif node.tag in _PATTERNS and not _PATTERNS[node.tag].match(node.value):
        problem = f"'{node.value}' is no {node.tag.rpartition(':')[2]}"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    sizes[node] = size = 1 + sum(_size(each, sizes) for each in inner)
    return size


def _check_keys(node: yaml.MappingNode) -> None:
    """Refuse a key that is given twice, where `<<` has not yet added keys, which others may replace."""
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if line := lines.get((key.tag, key.value)):
                problem = f"the key '{key.value}' is given twice, first in line {line}"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            lines[key.tag, key.value] = key.start_mark.line + 1


_Reader.add_constructor("tag:yaml.org,2002:int", _Reader.construct_int)
for _tag, _, _first in _PLAIN_TYPES:
    for _kind in (_Reader, _Writer):
        _kind.add_implicit_resolver(_tag, _PATTERNS[_tag], ["" if letter == "\0" else letter for letter in _first])


def read_yaml(text: str) -> object:
    """The document's data.

    Raises:
        ValueError: It is no YAML that can be used; the message names line and column.
    """
    try:
        return yaml.load(text, Loader=_Reader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_text(file: Path) -> str:
    """The text of a YAML file. Raises InputError where it cannot be read."""
    try:
        return read_bytes(file, MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", file=file) from None


def read_file(file: Path) -> object:
    """The plain data of a YAML file. Raises InputError where it cannot be read or is no YAML."""
    try:
        return read_yaml(read_text(file))
    except ValueError as error:
        raise InputError(str(error), file=file) from None


def write_yaml(data: object) -> str:
    """The data as a document in block style, with its keys in their order."""
    return yaml.dump(data, Dumper=_Writer, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120)
