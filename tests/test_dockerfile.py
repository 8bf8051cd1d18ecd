"""The Dockerfile copies and runs what exists, with fixed versions."""

import json
import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, WHEEL = PYPROJECT["project"], PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
OF_THE_BASE = {"pip", "useradd"}
"""Commands."""


def faults(text: str) -> set[str]:
    """The faults of a Dockerfile."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE))
    steps = [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]
    copied: list[str] = []
    users: list[str] = []
    found = {"names a host"} if re.search(r"://|\b[a-z0-9-]+\.(com|dev|io|net|org)\b", text) else set()
    for word, rest in steps:
        parts = shlex.split(rest)
        match word:
            case "FROM":
                version = re.fullmatch(r"python:(\d+\.\d+)[a-z0-9.-]*", parts[0])
                if not version or version[1] not in SpecifierSet(PROJECT["requires-python"]):
                    found.add("base not pinned")
            case "ADD":
                found.add("adds")
            case "COPY":
                copied += parts[:-1]
            case "RUN":
                commands = [shlex.split(each)[0] for each in re.split(r"&&|;|\|", rest)]
                found |= {f"runs {command}" for command in set(commands) - OF_THE_BASE}
                users += [parts[-1]] if "useradd" in commands else []
                given = [name for option, name in pairwise(parts) if option == "-c"]
                found |= {f"misses {name}" for name in given if name not in copied}
            case "ENTRYPOINT":
                found |= {f"runs {command}" for command in json.loads(rest)[:1] if command not in PROJECT["scripts"]}
    found |= {f"misses {name}" for name in copied if not (ROOT / name).exists() or f"!{name}" not in IGNORED}
    needed = {"pyproject.toml", "LICENSE", PROJECT["readme"], *WHEEL["packages"], *WHEEL["force-include"]}
    found |= {f"lacks {name}" for name in needed - set(copied)}
    last = [rest for word, rest in steps if word == "USER"][-1:]
    return found | ({"is root"} if not last or last[0] not in users else set())


def test_it_has_no_faults():
    assert not faults(DOCKERFILE)


@pytest.mark.parametrize(
    ("what", "instead", "fault"),
    [
        ("python:3.12-slim", "python:latest", "base not pinned"),
        ("python:3.12-slim", "python:3.9-slim", "base not pinned"),
        ("COPY scenarios scenarios", "ADD https://example.org/scenarios.tar scenarios", "adds"),
        ("COPY scenarios scenarios", "", "lacks scenarios"),
        ("COPY scenarios", "COPY scenes", "misses scenes"),
        ("COPY scenarios", "COPY docs", "misses docs"),
        ("-c constraints.txt", "-c pins.txt", "misses pins.txt"),
        ("RUN useradd", "RUN curl -O x && useradd", "runs curl"),
        ('"dlion"', '"dilon"', "runs dilon"),
        ("USER dlion", "", "is root"),
        ("USER dlion", "USER root", "is root"),
        ("PIP_EXTRA_INDEX_URL\n", "PIP_EXTRA_INDEX_URL=https://packages.example.org/cpu\n", "names a host"),
    ],
)
def test_faults_are_found(what, instead, fault):
    assert fault in faults(DOCKERFILE.replace(what, instead))


def test_only_copied_files_are_sent_to_the_builder():
    kept = {line.removeprefix("!") for line in IGNORED if line.startswith("!")}
    assert kept == {name for name in kept if re.search(rf"^COPY .*\b{re.escape(name)}\b", DOCKERFILE, re.MULTILINE)}
    assert "*" in IGNORED


def test_the_readmes_commands_are_those_of_the_file():
    commands = re.findall(r"docker (?:build|run) [^`\n]+", (ROOT / "README.md").read_text())
    assert len(commands) == 2
    assert all(f"#     {command}\n" in DOCKERFILE for command in commands)


def test_requirements_of_emulation_are_stated():
    assert "(--privileged)" in DOCKERFILE
    assert "`emulation`" in DOCKERFILE
    assert "emulation" in PROJECT["optional-dependencies"]
    assert (ROOT / "emulation" / "setup.sh").exists()
