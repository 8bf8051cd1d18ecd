"""A whole scenario from measured links between sites and the sites' machines; its comments say what was assumed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dlion_sim.calibration.links import read_links
from dlion_sim.errors import InputError, did_you_mean, printable
from dlion_sim.learning.datasets import PUBLISHED
from dlion_sim.learning.models import MODELS
from dlion_sim.own_code import is_reference
from dlion_sim.scenario import BANDWIDTH, CORES, DEVICES, DURATION, Cluster, Lan, Workload, from_data
from dlion_sim.scenario.devices import cores_of
from dlion_sim.scenario.machines import GIGABIT
from dlion_sim.yaml_text import read_yaml, write_yaml

Comments = dict[tuple[str | int, ...], str]
"""Comment by keys from the scenario on."""
_MACHINE = "a device of `devices` or a number of cores, e.g. gpu1=a100, lab=8cores, edge=2*t4"
_DURATION = 600.0
_EVALUATIONS = 60


def own_scenario(
    links: Path, sites: Sequence[str], *, dataset: str, model: str, duration: float | None = None, name: str = "mine"
) -> str:
    """The YAML of a scenario, which loads.

    Args:
        links: A CSV file with a row for each path, or YAML with a `cluster`, whose machines are ignored,
            and perhaps a `network`.
        sites: Machines of each site, "NAME=MACHINE" or "NAME=COUNT*MACHINE"; a name may come several times.
        dataset: Name of the data set.
        model: Name of the model.
        duration: Virtual time (s); by default ten minutes.
        name: Name of the scenario, if it is a valid one.

    Raises:
        InputError: A file or an argument is invalid, or the sites of both differ.
    """
    machines = _machines(sites)
    _check_names(dataset, model)
    cluster, network, mirrored = read_links(links)
    names = [cloud.name for cloud in cluster.clouds]
    for site in machines:
        if site not in names:
            problem = f"{links} has no site '{site}'{did_you_mean(site, names)}"
            raise InputError(problem, file="`sites`", allowed=f"{', '.join(names)}, e.g. {names[0]}=8cores")
    for site in names:
        if site not in machines:
            problem = f"is missing for '{site}' of {links}"
            raise InputError(problem, file="`sites`", allowed=f"a machine for each, e.g. {site}=8cores")
    training = Workload(dataset=dataset, model=model)
    lasts = _DURATION if duration is None else duration
    data: dict[str, Any] = {
        "name": name if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name) else "mine",
        "duration": DURATION.format(lasts),
        "workload": {
            "dataset": dataset,
            "model": model,
            "optimizer": {"kind": training.optimizer.kind, "learning_rate": training.optimizer.learning_rate},
            "batch_size": training.batch_size,
            "partition": training.partition.kind,
            "evaluate_every": DURATION.format(max(0.001, float(f"{lasts / _EVALUATIONS:.3g}"))),
            "compute_time": {"alpha": DURATION.format(training.compute_time.alpha)},
        },
        "cluster": {"clouds": [_cloud(site, machines[site], cluster) for site in machines]},
        "system": "dlion",
    }
    if cluster.wan:
        data["cluster"]["wan"] = cluster.wan.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if network:
        data["network"] = network.model_dump(mode="json", by_alias=True, exclude_unset=True)
    comments = _assumptions(data, with_duration=duration is None)
    comments |= {("cluster", "wan", matrix, a, b): f"assumed: as from {b} to {a}" for matrix, a, b in mirrored}
    about = f"# Its links are from {printable(links.name)}. What is assumed is marked: check it."
    text = f"{about}\n{_commented(write_yaml(data), comments)}"
    try:
        from_data(read_yaml(text))
    except InputError as error:
        argument = "`duration`" if error.path == "duration" else "`sites`"
        raise InputError(error.problem, file=argument, path=error.path, allowed=error.allowed) from None
    return text


def _check_names(dataset: str, model: str) -> None:
    """Raise InputError for unknown names and, of ready ones, for a model that does not take the data set's samples."""
    fitting = list(MODELS)
    if dataset in PUBLISHED:
        fitting = [name for name, each in MODELS.items() if PUBLISHED[dataset].input_kind in each.takes]
    for argument, given, known in (("dataset", dataset, list(PUBLISHED)), ("model", model, fitting)):
        if given not in known and not is_reference(given):
            problem = f"'{given}' is not for {dataset}" if given in MODELS else f"'{given}' is unknown"
            allowed = f"{', '.join(known)}, or package.module:name"
            raise InputError(f"{problem}{did_you_mean(given, known)}", file=f"`{argument}`", allowed=allowed)


def _machines(sites: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Groups of workers by site."""
    machines: dict[str, list[dict[str, Any]]] = {}
    for given in sites:
        site, _, written = (part.strip() for part in given.partition("="))
        count, star, kind = (part.strip() for part in written.rpartition("*"))
        if not site or not kind:
            raise InputError(f"'{given}' is not a site and its machine", file="`sites`", allowed=f"NAME={_MACHINE}")
        if star and not (count.isdecimal() and int(count)):
            problem = f"'{given}': '{count}' is not a number of machines"
            raise InputError(problem, file="`sites`", allowed=f"1 or more, e.g. {site}=2*{kind}")
        try:
            cores = CORES.parse(cores_of(kind))
        except ValueError as error:
            raise InputError(f"'{given}': {error}", file="`sites`", allowed=_MACHINE) from None
        if not cores:
            raise InputError(f"'{given}': a machine has more than 0 cores", file="`sites`", allowed=_MACHINE)
        group = {"count": int(count or 1), "compute": kind if kind in DEVICES else CORES.format(cores)}
        machines.setdefault(site, []).append(group)
    return machines


def _cloud(site: str, groups: Sequence[Mapping[str, Any]], cluster: Cluster) -> dict[str, Any]:
    """A site; its NICs limit none of its paths."""
    others = [cloud.name for cloud in cluster.clouds if cloud.name != site]
    paths = [cluster.wan_path(*ends)[0] for other in others for ends in ((site, other), (other, site))]
    rates = [value for path in (GIGABIT.up, *paths) if path for _, value in path.steps]
    workers = [{**group, "nic": BANDWIDTH.format(max(rates))} for group in groups]
    return {"name": site, "workers": workers, "lan": {"rtt": DURATION.format(Lan().rtt)}}


def _assumptions(data: Mapping[str, Any], *, with_duration: bool) -> Comments:
    workload, cluster = "workload", "cluster"
    rates = "assumed; on own machines a quarter and four times it are tried too"
    comments: Comments = {
        (workload, "optimizer", "learning_rate"): rates,
        (workload, "batch_size"): "assumed",
        (workload, "partition"): "assumed: every machine has an equal share of the samples, of all classes",
        (workload, "evaluate_every"): f"assumed: a {_EVALUATIONS}th of the duration",
        (workload, "compute_time"): "assumed: a sample takes the model's FLOPs; better measured",
        (cluster, "clouds"): "assumed: no regions and no prices, so money is left out",
        (cluster, "wan"): "assumed: each path has its own bandwidth",
        ("system",): "assumed; a recommendation tries others",
    }
    if with_duration:
        comments["duration",] = "assumed; a recommendation has to reach its target within it"
    for number, cloud in enumerate(data["cluster"]["clouds"]):
        here = "cluster", "clouds", number
        comments[*here, "lan"] = "assumed: a switch that limits nothing, and this round trip"
        for index, group in enumerate(cloud["workers"]):
            comments[*here, "workers", index, "nic"] = "assumed: 1 Gbps, or the site's fastest path if that is more"
            if device := DEVICES.get(group["compute"]):
                comments[*here, "workers", index, "compute"] = f"assumed: {device.cores:g} cores"
    return comments


def _commented(text: str, comments: Comments) -> str:
    """The YAML with comments behind the keys that they are about."""
    lines = text.splitlines()
    for place, number in _lines(yaml.compose(text), ()):
        if place in comments:
            lines[number] += f"  # {comments[place]}"
    return "".join(f"{line}\n" for line in lines)


def _lines(node: yaml.Node | None, above: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """The line of each key."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*above, key.value), key.start_mark.line
            yield from _lines(value, (*above, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _lines(value, (*above, number))
