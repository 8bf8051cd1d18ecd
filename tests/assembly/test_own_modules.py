"""Modules of the user's own are found beside the scenario that names them, from wherever it is run."""

import shutil
import sys
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest
import yaml

from dlion_sim import own_code, own_sources
from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.scenario import from_data, load, to_data
from dlion_sim.simulation import resume, simulate
from dlion_sim.sweep import Job, check, load_sweep
from dlion_sim.sweep.job import work
from tests.command import dlion
from tests.simulation.checkpointing.test_checkpoint import After
from tests.simulation.scenarios import digits

OWN = """\
import torch
from torch import nn
from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.tasks import Score, Task
from dlion_sim.metric import Metric
from dlion_sim.protocol.baseline import FullExchange
from dlion_sim.protocol.systems import SYSTEMS

SYSTEM = SYSTEMS["baseline"]

class Whole(FullExchange):
    '''All to all.'''

def data():
    x = torch.arange(240.0).view(120, 2) / 240
    return x, x.sum(1), x, x.sum(1)

def net(dataset):
    return nn.Linear(2, 1)

def deep(dataset):
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))

class Absolute(Task):
    metric = Metric("mean error", higher_is_better=False)
    outputs = 1

    def output_shape(self, targets):
        return len(targets), 1

    def fault(self, targets):
        return None

    def losses(self, outputs, targets):
        return (outputs[:, 0] - targets).abs()

    def measure(self, outputs, targets):
        return self.losses(outputs, targets).double().sum().view(1)

    def score(self, sums, samples):
        return Score(sums[0] / samples, sums[0] / samples)

def told():
    return Dataset(*data(), task=Absolute())
"""
ALL_OWN = (
    "workload.dataset=yonder:data",
    "workload.model=yonder:net",
    "system={name: yonder:SYSTEM, exchange: yonder:Whole}",
)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder with a scenario and its modules, which is not the current one."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "yonder.py").write_text(OWN)
    written = to_data(digits(*ALL_OWN, "duration=1 s", "workload.evaluate_every=1 s"))
    written.pop("modules", None)
    (folder / "mine.yml").write_text(yaml.safe_dump(written))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield folder
    forget()


def forget():
    """As in another process."""
    for module in [*sys.modules]:
        if module.partition(".")[0] in ("yonder", "colorsys", "further", "near"):
            sys.modules.pop(module)


def test_all_that_a_scenario_names_is_found_beside_it(elsewhere, monkeypatch):
    assert dlion(monkeypatch, "run", "../elsewhere/mine.yml", "-q", "-o", "run") == 0
    told = Run.open(Path("run")).manifest["own_code"]
    assert {each["name"] for each in told.values()} == {"yonder:data", "yonder:net", "yonder:SYSTEM", "yonder:Whole"}


def test_a_folder_of_modules_may_be_named(elsewhere):
    code = Path.cwd() / "code"
    code.mkdir()
    (elsewhere / "yonder.py").rename(code / "yonder.py")
    assert Setting.of(load(elsewhere / "mine.yml", ["modules=code"])).scenario.modules == str(code)


def test_a_resumed_run_finds_them_or_names_the_places_searched(elsewhere, tmp_path, monkeypatch, capsys):
    stopped = simulate(load(elsewhere / "mine.yml"), tmp_path / "run", interrupted=After(20)).folder
    moved = shutil.copytree(stopped, tmp_path / "moved")
    forget()
    assert resume(stopped).manifest["status"] == "completed"
    forget()
    elsewhere.rename(tmp_path / "gone")
    assert dlion(monkeypatch, "run", "--resume", moved) == 2
    [line] = capsys.readouterr().err.splitlines()
    places = f"a module in {elsewhere} or {tmp_path / 'here'}, or wherever Python finds modules"
    assert line == f"dlion: system.name: 'yonder:SYSTEM' cannot be found: No module named 'yonder'; allowed: {places}"
    text = (moved / "scenario.yaml").read_text().replace(str(elsewhere), str(tmp_path / "gone"))
    (moved / "scenario.yaml").write_text(text)
    assert dlion(monkeypatch, "run", "--resume", moved, "-q") == 0


def test_a_sweep_finds_them_beside_its_base(elsewhere, tmp_path):
    (tmp_path / "sweep.yaml").write_text("{base: elsewhere/mine.yml, axes: {seed: [4]}}")
    points = load_sweep(tmp_path / "sweep.yaml")
    check(points)
    job = Job.of(points[0], tmp_path / "out", "cpu")
    forget()  # The job is another process's.
    assert work(job, lambda: False, lambda event: None).status == "completed"


def test_a_sweep_goes_over_models_of_ones_own(elsewhere, tmp_path, monkeypatch):
    axes = "{workload.model: [yonder:net, yonder:deep]}"
    (tmp_path / "sweep.yaml").write_text(f"{{base: elsewhere/mine.yml, axes: {axes}}}")
    assert dlion(monkeypatch, "sweep", tmp_path / "sweep.yaml", "-o", "swept", "--jobs", "1", "-q") == 0
    runs = [Run.open(folder) for folder in Path("swept").iterdir() if folder.is_dir()]
    assert {run.point["workload.model"]: run.manifest["parameters"] for run in runs} == {
        "yonder:net": 3,
        "yonder:deep": 13,
    }
    assert all(run.manifest["own_code"]["workload.model"]["name"] == run.point["workload.model"] for run in runs)


def test_an_own_task_is_learned_by_its_metric(elsewhere, tmp_path, monkeypatch, capsys):
    told = ("--set", "workload.dataset=yonder:told", "--set", "target=0.2", "--set", "duration=60 s")
    assert dlion(monkeypatch, "run", "../elsewhere/mine.yml", *told, "-o", "run") == 0
    assert "mean error" in capsys.readouterr().out
    run = Run.open(Path("run"))
    assert run.manifest["metric"] == {"name": "mean error", "higher_is_better": False}
    assert run.summary["stopped_by"] == "target"
    assert run.summary["metric"]["mean"] <= 0.2 < run.evaluations()["metric"].iloc[0]
    evaluations = run.evaluations()
    assert evaluations["metric"].tolist() == evaluations["loss"].tolist()


def test_installed_modules_have_precedence_over_the_scenarios_and_the_current_folders(elsewhere):
    for name, folder in (("colorsys", elsewhere), ("yonder", Path())):
        (folder / f"{name}.py").write_text("raise AssertionError")
    Setting.of(load(elsewhere / "mine.yml"))
    assert sys.path[-2:] == [str(elsewhere), str(Path.cwd())]
    forget()
    with pytest.raises(InputError, match="'colorsys:net' cannot be found: colorsys has no 'net'"):
        Setting.of(load(elsewhere / "mine.yml", ["workload.model=colorsys:net"]))


def test_modules_of_two_scenarios_with_one_name_are_not_confused(elsewhere, tmp_path):
    other = shutil.copytree(elsewhere, tmp_path / "other")
    Setting.of(load(elsewhere / "mine.yml"))
    line = f"system.name: 'yonder:SYSTEM' cannot be had beside the 'yonder' of another scenario, {elsewhere}/yonder.py"
    with pytest.raises(InputError, match=line):
        Setting.of(load(other / "mine.yml"))
    forget()
    Setting.of(load(other / "mine.yml"))
    assert str(elsewhere) not in sys.path
    (other / "yonder.py").unlink()
    with pytest.raises(InputError, match="of another scenario"):
        Setting.of(load(elsewhere / "mine.yml"))


def test_a_scenario_without_code_of_ones_own_names_no_folder():
    assert "modules" not in to_data(from_data(to_data(digits())))


class Hook:
    """Finds a module as the import hook of a package that is installed in place."""

    def __init__(self, file):
        self.file = file

    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, self.file) if name == "yonder" and path is None else None


def test_the_digest_of_what_an_import_hook_finds_changes_with_it(elsewhere, monkeypatch):
    file = elsewhere / "yonder.py"
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Hook(file)])
    digest = own_code.source_digest("yonder:net")
    own_code.referenced("yonder:net", "workload.model")
    assert digest == own_code.digest("yonder")
    file.write_text(f"{OWN}# edited")
    assert own_code.source_digest("yonder:net") not in (digest, "")


def test_the_digest_of_a_module_below_folders_without_packages_is_taken_without_an_import(elsewhere):
    file = elsewhere / "further" / "still" / "beyond.py"
    file.parent.mkdir(parents=True)
    file.write_text("net = None")
    digest = own_code.source_digest("further.still.beyond:net", str(elsewhere))
    assert "further" not in sys.modules
    own_code.referenced("further.still.beyond:net", "workload.model", str(elsewhere))
    assert digest == own_code.digest("further.still.beyond")


IMPORTS = ("from near import layers", "import near.layers", "from .layers import size", "from . import layers as sizes")


@pytest.mark.parametrize("imports", IMPORTS)
@pytest.mark.parametrize("package", [True, False])
def test_the_digest_changes_with_what_the_module_imports_from_beside_it(elsewhere, imports, package):
    folder = elsewhere / "near"
    folder.mkdir()
    if package:
        (folder / "__init__.py").touch()
    (folder / "model.py").write_text(f"{imports}\nnet = None\n")
    (folder / "layers.py").write_text("import torch\ndef size():\n    from near.sizes import size\n")
    (folder / "sizes.py").write_text("from . import model")
    (folder / "unused.py").touch()

    def digest() -> str:
        return own_code.source_digest("near.model:net", str(elsewhere))

    before = digest()
    assert "near" not in sys.modules
    own_code.referenced("near.model:net", "workload.model", str(elsewhere))
    assert own_code.digest("near.model") == before
    (folder / "unused.py").write_text("size = 2")
    assert digest() == before
    (folder / "sizes.py").write_text("size = 2")
    assert digest() != before


def test_the_digest_of_a_module_that_cannot_be_compiled_is_of_its_own_file(elsewhere):
    (elsewhere / "near.py").write_text("import yonder\nnet = (")
    digest = own_code.source_digest("near:net", str(elsewhere))
    (elsewhere / "yonder.py").write_text("edited = True")
    assert own_code.source_digest("near:net", str(elsewhere)) == digest != ""


def test_the_digest_of_an_installed_module_is_of_its_own_file(elsewhere, monkeypatch):
    monkeypatch.setattr(own_sources, "_INSTALLED", [str(elsewhere.resolve())])
    (elsewhere / "near.py").write_text("import yonder\nnet = None")
    digest = own_code.source_digest("near:net", str(elsewhere))
    (elsewhere / "yonder.py").write_text("edited = True")
    assert own_code.source_digest("near:net", str(elsewhere)) == digest
