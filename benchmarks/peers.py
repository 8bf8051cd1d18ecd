"""Seconds and memory of rounds of federated learning by the number of clients: Flower, pfl-research, and here.

In each round a cohort of the clients takes one step of SGD on 32 of the digits each from the server's parameters, and
the server averages. Here messages also share links in virtual time, which the others do not simulate; pfl-research also
evaluates each client's loss. A round is a part of the difference between a run of one and a longer one, so that neither
imports nor processes that start count; memory is the peak of all processes together (PSS).

Peers are looked for in the interpreter `--peers`, which needs torch, scikit-learn, `flwr[simulation]` and
`pfl[pytorch]`; this file runs there without dlion_sim.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

CLIENTS, SHORT = ((100, 100), (1000, 1000), (10_000, 1000), (100_000, 1000)), ((20, 10),)
"""Numbers of all clients, and of those in a cohort."""
CLIENT_ROUNDS, ROUNDS = 10_000, 2
"""What the difference of two runs has: so many rounds of all of a cohort together, in at least so many rounds."""
LIMIT = 1200
"""Seconds after which a peer's run is ended."""
BATCH, RATE = 32, 0.1


def digits() -> tuple[Any, Any]:
    """The training digits as here: inputs [n, 1, 8, 8] from 0 to 1, and classes [n]."""
    import torch
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.images, dtype=torch.float32).unsqueeze(1)[:1438] / 16, torch.tensor(data.target)[:1438]


def network() -> Any:
    """The network `mlp` for the digits."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def flower(clients: int, cohort: int, rounds: int) -> None:
    """Flower's simulation, on Ray."""
    import torch
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    inputs, targets = digits()
    client, server = ClientApp(), ServerApp()

    @client.train()  # type: ignore[untyped-decorator]
    def train(message: Any, context: Any) -> Any:
        torch.set_num_threads(1)
        model = network()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        chosen = torch.randint(len(inputs), (BATCH,))
        loss = torch.nn.functional.cross_entropy(model(inputs[chosen]), targets[chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.optim.SGD(model.parameters(), RATE).step()
        content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": BATCH})}
        return Message(content=RecordDict(content), reply_to=message)

    @server.main()  # type: ignore[untyped-decorator]
    def main(grid: Any, context: Any) -> None:
        strategy = FedAvg(fraction_train=cohort / clients, fraction_evaluate=0.0, min_available_nodes=clients)
        strategy.start(grid=grid, initial_arrays=ArrayRecord(network().state_dict()), num_rounds=rounds)

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server_app=server, client_app=client, num_supernodes=clients, backend_config=resources)


def pfl(clients: int, cohort: int, rounds: int) -> None:
    """pfl-research's simulation, in one process."""
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Weighted
    from pfl.model.pytorch import PyTorchModel

    images, classes = digits()

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def loss(self, inputs: Any, targets: Any, is_train: bool = True) -> Any:
            return torch.nn.functional.cross_entropy(self.network(inputs), targets)

        def metrics(self, inputs: Any, targets: Any) -> dict[str, Weighted]:
            return {"loss": Weighted(self.loss(inputs, targets).item(), 1)}

    def samples(user: int) -> Any:
        chosen = torch.randint(len(images), (BATCH,))
        return Dataset(raw_data=(images[chosen], classes[chosen]), user_id=str(user))

    users = list(range(clients))
    data = FederatedDataset(samples, get_user_sampler("minimize_reuse", users))
    module = Network()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), 1.0))
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds, evaluation_frequency=rounds + 1, train_cohort_size=cohort, val_cohort_size=0
        ),
        backend=SimulatedBackend(training_data=data, val_data=data),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=RATE, local_batch_size=BATCH, local_max_grad_norm=None
        ),
        model_eval_params=None,
        callbacks=[],
    )


def ours(clients: int, cohort: int, rounds: int) -> None:
    """Federated averaging in virtual time, of which a round of a cohort takes as long with any number of clients."""
    one, two = (simulated(cohort, cohort, iterations=steps) for steps in (1, 2))
    simulated(clients, cohort, duration=f"{rounds * (two - one)} s")


def simulated(clients: int, cohort: int, **end: Any) -> float:
    """The virtual seconds of a run to that end."""
    from dlion_sim.scenario import from_data
    from dlion_sim.simulation.simulate import simulate

    workers = {"count": clients, "compute": "4 cores", "nic": "100 Mbps"}
    scenario = from_data(
        {
            "name": "peers",
            "record_transfers": False,
            "workload": {
                "dataset": "digits",
                "model": "mlp",
                "batch_size": BATCH,
                "partition": "shared",
                "evaluate_every": "1000000 s",
            },
            "cluster": {"clouds": [{"name": "lab", "workers": [workers], "lan": {"rtt": "20 ms"}}]},
            "system": {
                "name": "fedavg",
                "exchange": {"participation": cohort / clients, "epochs": BATCH / len(digits()[0])},
            },
            **end,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        return float(simulate(scenario, Path(folder) / "run", checkpoint_every=None).outcome["virtual_seconds"])


SYSTEMS: Mapping[str, Callable[[int, int, int], None]] = {"dlion_sim": ours, "pfl": pfl, "flwr": flower}
"""By the package that is imported."""


def memory(session: int) -> float:
    """The memory of all processes of a session in MB, with what they share counted once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1e3


def measured(python: str, system: str, clients: int, cohort: int, rounds: int) -> tuple[float, float] | None:
    """Seconds and the peak memory (MB) of a run; None if it fails or takes too long."""
    command = [python, __file__, "--only", system, str(clients), str(cohort), str(rounds)]
    began, peak = time.monotonic(), 0.0
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True) as process:
            while process.poll() is None and time.monotonic() - began < LIMIT:
                peak = max(peak, memory(process.pid))
                time.sleep(0.1)
            seconds = time.monotonic() - began
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            said.seek(0)
            print(
                f"{system}, {clients} clients, {cohort} a round: failed\n{said.read().decode(errors='replace')[-2000:]}"
            )
            return None
    return seconds, peak


def cells(python: str, system: str, clients: int, cohort: int, *, short: bool) -> tuple[str, ...]:
    """A row of the table."""
    more = ROUNDS if short else max(ROUNDS, CLIENT_ROUNDS // cohort)
    few, many = (measured(python, system, clients, cohort, rounds) for rounds in (1, 1 + more))
    if few is None or many is None:
        return system, str(clients), str(cohort), "-", "-", "-"
    a_round = (many[0] - few[0]) / more
    return system, str(clients), str(cohort), f"{a_round:.2f}", f"{1e3 * a_round / cohort:.2f}", f"{many[1] / 1e3:.2f}"


def main() -> None:
    """Run each system with each number of clients."""
    if sys.argv[1:2] == ["--only"]:
        SYSTEMS[sys.argv[2]](*map(int, sys.argv[3:6]))
        return
    from rich.console import Console

    from benchmarks.measuring import options, table

    parser = options(__doc__)
    parser.add_argument("--peers", default=sys.executable, help="the Python interpreter that has them")
    arguments = parser.parse_args()
    shown = table("peers: rounds of one step", "", "clients", "cohort", "s a round", "ms a client of it", "memory, GB")
    for system in SYSTEMS:
        python = sys.executable if system == "dlion_sim" else arguments.peers
        if subprocess.run([python, "-c", f"import {system}"], capture_output=True).returncode:
            shown.add_row(system, "-", "-", "not installed", "-", "-")
            continue
        for clients, cohort in SHORT if arguments.short else CLIENTS:
            shown.add_row(*cells(python, system, clients, cohort, short=arguments.short))
    Console().print(shown)


if __name__ == "__main__":
    main()
