"""Runs the nodes of a scenario on hosts that share nothing, and compares with its simulation. Needs root."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from dlion_sim.assembly import Setting
from dlion_sim.cli.conventions import FAILED
from dlion_sim.cli.main import main
from dlion_sim.cli.options import Overrides, ScenarioName
from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.registry import PUBLISHED
from dlion_sim.live import gather
from dlion_sim.live.private_file import write_secret
from dlion_sim.results import Run
from dlion_sim.scenario import Scenario, dump, find, load
from dlion_sim.scenario.parametrised import named
from dlion_sim.simulation import simulate
from emulation.host import Host, hosts

_SCENARIO, _PARTS, _DATA = "scenario.yaml", "parts", "data"
_NODE = (sys.executable, "-m", "dlion_sim", "node", _SCENARIO, f"--output={_PARTS}", "--device=cpu")
_CA = """
openssl req -x509 -newkey ed25519 -noenc -days 1 -subj /CN=nodes -keyout ca.key -out ca.pem
for rank; do
  openssl req -newkey ed25519 -noenc -subj /CN=node-$rank -addext subjectAltName=DNS:node-$rank \
    -keyout node-$rank.key -out node-$rank.csr
  openssl x509 -req -in node-$rank.csr -copy_extensions copy -CA ca.pem -CAkey ca.key -days 1 -out node-$rank.pem
done
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def run(
    scenario: ScenarioName,
    output: Annotated[Path, typer.Option("--output", "-o", help="A new folder for the parts and both runs.")],
    overrides: Overrides = [],  # noqa: B006  (only read)
    own_ca: Annotated[
        bool, typer.Option("--own-ca", help="Give the nodes certificates of a CA, in place of a secret.")
    ] = False,
) -> None:
    """Run a scenario's nodes on hosts that share nothing, gather their parts, and compare with its simulation.

    Participants that are absent at the start by the scenario's availability join when it says. Exits with 1 where a
    node has failed.
    """
    loaded = load(find(scenario), overrides)
    if output.exists():
        raise InputError("exists", file=output, allowed="a new folder")
    ends = run_on_hosts(loaded, output / _PARTS, own_ca=own_ca)
    live = gather(output / _PARTS, output / "live")
    print(comparison(live, simulate(loaded, output / "simulated", device="cpu")))
    if any(ends):
        raise typer.Exit(FAILED)


def run_on_hosts(scenario: Scenario, parts: Path, *, own_ca: bool = False) -> Sequence[int]:
    """Run the nodes, copy what they have written to `parts`, and return how they exited."""
    setting = Setting.of(scenario)
    ranks = range(setting.participants)
    absent = {rank: next(setting.outages.participant(rank)).end for rank in setting.outages.absent_at_start}
    names = [f"host-{rank}" for rank in ranks]
    peers = ",".join(f"{name}:7000" for name in names)
    nodes: dict[int, subprocess.Popen[str]] = {}
    with TemporaryDirectory() as safe, ExitStack() as stack, hosts(names) as machines:
        credentials = _credentials(Path(safe), ranks, own_ca=own_ca)

        def start(rank: int, *options: str) -> None:
            prepare(machines[rank], scenario, credentials[rank].values())
            options = (*options, f"--rank={rank}", f"--peers={peers}")
            given = (f"{option}={file.name}" for option, file in credentials[rank].items())
            nodes[rank] = stack.enter_context(machines[rank].start(*_NODE, *given, *options, DLION_DATA=_DATA))

        for rank in ranks:
            if rank not in absent:
                start(rank)
        for node in nodes.values():
            _wait_until_begun(node)
        began = time.monotonic()
        for end, rank in sorted((end, rank) for rank, end in absent.items() if math.isfinite(end)):
            time.sleep(max(0.0, began + end - time.monotonic()))
            start(rank, "--join")
        for rank, node in nodes.items():
            print(node.communicate()[0], end="")
            if (machines[rank].home / _PARTS).exists():
                shutil.copytree(machines[rank].home / _PARTS, parts, dirs_exist_ok=True)
    return [node.returncode for node in nodes.values()]


def prepare(host: Host, scenario: Scenario, files: Iterable[Path]) -> None:
    """Copy to a host what a node needs: the scenario, its data set, and the files of its credentials."""
    (host.home / _SCENARIO).write_text(dump(scenario))
    (host.home / _DATA).mkdir()
    for file in files:
        shutil.copy(file, host.home)
    published = PUBLISHED.get(named(scenario.workload.dataset)[0])
    if published and published.source:
        folder = host.home / _DATA / published.source.folder
        folder.mkdir()
        for name, content in published.source.read().items():
            (folder / name).write_bytes(content)


def comparison(live: Run, simulated: Run) -> str:
    """Whether both have learned the same."""
    learned = [run.iterations().set_index(["worker", "iteration"])["loss"].sort_index() for run in (live, simulated)]
    same = "the same" if learned[0].equals(learned[1]) else "not the same"
    accuracies = [((run.summary or {}).get("accuracy") or {}).get("mean") for run in (live, simulated)]
    return (
        f"losses of iterations: {same} to the bit ({len(learned[0])} and {len(learned[1])}); "
        f"accuracies at the end: {accuracies[0]} and {accuracies[1]}"
    )


def _credentials(safe: Path, ranks: Sequence[int], *, own_ca: bool) -> Sequence[Mapping[str, Path]]:
    """The files that each node is given, by the options that name them."""
    if not own_ca:
        write_secret(safe / "secret")
        return [{"--secret-file": safe / "secret"} for _ in ranks]
    made = subprocess.run(
        ["sh", "-ec", _CA, "sh", *map(str, ranks)], cwd=safe, umask=0o077, stderr=subprocess.PIPE, text=True
    )
    if made.returncode:
        raise InputError(f"openssl makes no certificates: {made.stderr.strip()}", allowed="OpenSSL 3")
    return [
        {"--ca": safe / "ca.pem", "--certificate": safe / f"node-{rank}.pem", "--key": safe / f"node-{rank}.key"}
        for rank in ranks
    ]


def _wait_until_begun(node: subprocess.Popen[str]) -> None:
    """Print what a node says until then, or until its end."""
    assert node.stdout is not None
    for line in node.stdout:
        print(line, end="")
        if line.rstrip().endswith("begun"):
            return


if __name__ == "__main__":
    main(app)
