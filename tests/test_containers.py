"""The examples for Docker Compose and Kubernetes: commands are the command line's, and parts fit together."""

import re
import shlex
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import kubernetes_validate
import pytest
import typer
import yaml

from dlion_sim.assembly import Setting
from dlion_sim.cli.main import app
from dlion_sim.live import gather
from dlion_sim.live.private_file import write_secret
from dlion_sim.results import RunWriter
from dlion_sim.scenario import load
from dlion_sim.simulation import simulate
from emulation.host import hosts
from emulation.hosts import comparison
from tests.pages import ROOT

FOLDER = ROOT / "examples" / "containers"
SCENARIO = FOLDER / "scenario.yaml"
PARTICIPANTS = Setting.of(load(SCENARIO)).participants
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
OBJECTS = {each["kind"]: each for each in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())}
STATEFUL_SET, SERVICE = OBJECTS["StatefulSet"], OBJECTS["Service"]
POD = STATEFUL_SET["spec"]["template"]["spec"]
(NODE,) = POD["initContainers"]
DLION = typer.main.get_command(app)


def parsed(words: list[str]) -> tuple[str, dict]:
    """A command, and what the command line makes of its arguments."""
    name, *rest = words
    with DLION.commands[name].make_context(name, rest) as context:
        return name, context.params


@pytest.fixture(scope="module")
def services():
    return {name: parsed(shlex.split(each["command"])) for name, each in COMPOSE["services"].items()}


def test_services_are_a_run_and_what_gathers_it(services):
    nodes = {name: given for name, (command, given) in services.items() if command == "node"}
    assert [given["rank"] for given in nodes.values()] == list(range(PARTICIPANTS))
    assert {given["peers"] for given in nodes.values()} == {",".join(f"{name}:7000" for name in nodes)}
    assert all((FOLDER / given["scenario"]).exists() for given in nodes.values())
    ((command, gathers),) = [services[name] for name in services.keys() - nodes.keys()]
    assert command == "gather"
    assert {given["output"] for given in nodes.values()} == {gathers["parts"]}
    (waits,) = [each["depends_on"] for each in COMPOSE["services"].values() if "depends_on" in each]
    assert waits == {name: {"condition": "service_completed_successfully"} for name in nodes}


def test_services_have_what_they_name(services):
    for name, service in COMPOSE["services"].items():
        assert service.keys() <= {"image", "pull_policy", "user", "volumes", "secrets", "command", "depends_on"}
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys()
        secrets = [Path("/run/secrets", each) for each in service.get("secrets", ())]
        assert [file for file in [services[name][1].get("secret_file")] if file] == secrets
        assert service["image"] == "dlion-sim"
    assert COMPOSE.keys() <= {"services", "secrets", "x-service", "x-node"}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_are_valid(kind):
    kubernetes_validate.validate(OBJECTS[kind], kubernetes_validate.latest_version(), strict=True)


def test_the_service_names_the_pods_of_the_set():
    spec = STATEFUL_SET["spec"]
    assert spec["serviceName"] == SERVICE["metadata"]["name"]
    assert SERVICE["spec"]["clusterIP"] == "None"
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == SERVICE["spec"]["selector"] == labels
    assert spec["replicas"] == PARTICIPANTS


def test_containers_mount_what_there_is():
    volumes = {each["name"] for each in POD["volumes"]}
    volumes |= {each["metadata"]["name"] for each in STATEFUL_SET["spec"]["volumeClaimTemplates"]}
    mounted = {mount["name"] for each in (*POD["containers"], NODE) for mount in each["volumeMounts"]}
    assert mounted == volumes
    text = (FOLDER / "kubernetes.yaml").read_text()
    made = re.findall(r"#     kubectl create (secret|configmap) (?:generic )?(\w+) --from-file=([\w.]+)", text)
    (given,) = [each["projected"]["sources"] for each in POD["volumes"]]
    assert [{"configMap" if kind == "configmap" else kind: {"name": name}} for kind, name, _ in made] == given
    (folder,) = [mount["mountPath"] for mount in NODE["volumeMounts"] if mount["name"] == "given"]
    assert all(f"{folder}/{file} " in NODE["args"][0] for _, _, file in made)


def test_pods_are_the_peers():
    script = NODE["args"][0].replace("\\\n", " ")
    (line,) = [line for line in script.splitlines() if line.startswith("exec dlion ")]
    command, given = parsed(shlex.split(re.sub(r"\$\(.*\)", "", line).replace('"$rank"', "1"))[2:])
    assert command == "node"
    name, service = STATEFUL_SET["metadata"]["name"], SERVICE["metadata"]["name"]
    ports = {each["port"] for each in SERVICE["spec"]["ports"]}
    assert given["peers"] == ",".join(
        f"{name}-{rank}.{service}:{port}" for port in ports for rank in range(PARTICIPANTS)
    )


def test_a_pod_joins_only_if_its_node_had_begun(tmp_path):
    (choice,) = re.findall(r"\$\(grep .*\)", NODE["args"][0])

    def chosen():
        return subprocess.check_output(["sh", "-ec", f"rank=1; echo {choice}"], cwd=tmp_path, text=True).strip()

    assert chosen() == ""
    for part, begun in [("rank-1.1", True), ("rank-1", False)]:
        about = {"rank": 1, "begun": begun}
        writer = RunWriter.create(tmp_path / "parts" / part, scenario_yaml="", manifest=about)
        assert chosen() == ""
    writer.note(begun=True)
    assert chosen() == "--join"


@pytest.mark.emulation
def test_pods_run_and_are_gathered(tmp_path):
    """The command of the pods on hosts that have their names and files."""
    names = [f"{STATEFUL_SET['metadata']['name']}-{rank}" for rank in range(PARTICIPANTS)]
    write_secret(tmp_path / "secret")
    with ExitStack() as stack, hosts(names) as pods:
        nodes = []
        for pod in pods:
            pod.resolve({f"{each.name}.{SERVICE['metadata']['name']}": each.address for each in pods})
            given = pod.root / "run" / "dlion"
            given.mkdir(parents=True)
            for file in (SCENARIO, tmp_path / "secret"):
                shutil.copy(file, given)
            nodes.append(stack.enter_context(pod.start(*NODE["command"], *NODE["args"])))
        said = [node.communicate()[0] for node in nodes]
        for pod in pods:
            shutil.copytree(pod.home / "parts", tmp_path / "parts", dirs_exist_ok=True)
    assert all("completed (iterations)" in each for each in said), said
    live, simulated = gather(tmp_path / "parts", tmp_path / "live"), simulate(load(SCENARIO), tmp_path / "simulated")
    assert "the same to the bit" in comparison(live, simulated)
