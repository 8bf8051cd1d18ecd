"""What a user's own dataset or model cannot be is refused in one line; what it raises comes as it is."""

import sys
from textwrap import indent

import pytest
import torch

from dlion_sim.assembly import Setting, manifest_fields
from dlion_sim.errors import InputError
from tests.simulation.scenarios import digits

HEAD = """\
import numpy as np
import torch
from torch import nn
from dlion_sim.learning.datasets import Dataset, NormalisedImages
from dlion_sim.learning.tasks import Classification, NextToken, Regression

x, y, classes, tokens = torch.randn(90, 3), torch.randn(90, 2), torch.arange(90) % 4, torch.arange(900).view(90, 10) % 7

def data():
    return x, y, x, y

def net(dataset):
    return nn.Linear(3, 2)

def broken(dataset):
    return 1 / 0

class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 2)
    def forward(self, inputs):
        return self.layer(self.norm(inputs))

class Noisy(nn.Module):
    def __init__(self, dataset):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, inputs):
        return self.layer(inputs) + torch.randn(2)

"""


@pytest.fixture
def setting(tmp_path, monkeypatch):
    """Of the user's functions `data` and `net` with some other body, or of others of theirs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())

    def of(*overrides, data="return x, y, x, y", net="return nn.Linear(3, 2)"):
        bodies = f"def data():\n{indent(data, '    ')}\n\ndef net(dataset):\n{indent(net, '    ')}\n"
        (tmp_path / "mine.py").write_text(HEAD + bodies)
        sys.modules.pop("mine", None)
        return Setting.of(digits("workload.dataset=mine:data", "workload.model=mine:net", *overrides))

    yield of
    sys.modules.pop("mine", None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return None", "'mine:data' returns a NoneType; allowed: a Dataset, or train_inputs, train_targets"),
        ("return x, y", "'mine:data' returns 2 things"),
        ("return x.numpy(), y, x, y", "returns a ndarray as train_inputs; allowed: a torch.Tensor"),
        ("return x, y, x, [1]", "returns a list as test_targets"),
        ("return x, y[:5], x, y", r"returns train_inputs of float32 \[90, 3\], but train_targets of float32 \[5, 2\]"),
        ("return x, y, x[:0], y[:0]", "returns no samples as test_inputs and test_targets"),
        (
            "return x, y, x[:, :2], y",
            r"returns test_inputs of float32 \[90, 2\], but train_inputs of float32 \[90, 3\]",
        ),
        ("return x / 0, y, x, y", "returns train_inputs that are not all finite"),
        ("return x, y / 0, x, y", "train_targets that cannot be learned: they must be finite"),
        (
            "return x, y, x, y[:, :1]",
            r"test_targets that cannot be learned: they must be float32 \[N, 2\], not float32",
        ),
        ("return x, classes - 1, x, classes", "train_targets that cannot be learned: they must be from 0 to 3, not -1"),
        ("return x, classes.view(9, 10), x, classes", r"returns train_targets of int64 \[9, 10\]"),
        ("return x, x > 0, x, x > 0", r"returns train_targets of bool \[90, 3\] for train_inputs"),
        ("return x.to(torch.complex64), y, x, y", "returns train_inputs of complex64"),
        ("return Dataset(x, x > 0, x, x > 0)", r"returns train_targets of bool \[90, 3\] for train_inputs"),
        ("return Dataset(x, y, x, [1])", "returns a list as test_targets"),
        ("return Dataset(x, y, x, y, task='regress')", "has a str as its task; allowed: Classification, NextToken"),
        ("return Dataset(x, classes, x, classes, Classification(3))", "they must be from 0 to 2, not 0 to 3"),
        ("return Dataset(x, y, x, [1], Regression(2))", "returns a list as test_targets"),
        (
            "return Dataset(x, y, x, y, Regression(2), owners=classes[:5])",
            r"has int64 \[5\] as owners; allowed: int64 \[90\]",
        ),
    ],
)
def test_unusable_datasets(setting, body, words):
    with pytest.raises(InputError, match=words) as fault:
        setting(data=body)
    assert fault.value.path == "workload.dataset"
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 3", "'mine:net' returns a int; allowed: a torch.nn.Module"),
        ("return nn.Tanh()", "has no parameters to train"),
        ("return nn.Linear(3, 2).double()", "has weight as torch.float64 on cpu; allowed: float32 on the CPU"),
        ("return nn.Linear(3, 2).requires_grad_(False)", "does not train weight"),
        ("return nn.Linear(4, 2)", r"cannot take inputs of float32 \[1, 3\]: RuntimeError: mat1 and mat2"),
        ("return nn.Linear(3, 5)", r"gives float32 \[1, 5\] for a sample; allowed: float32 \[1, 2\]"),
        ("return nn.LSTM(3, 2)", r"gives a tuple; allowed: a tensor of \[1, 2\]"),
        ("return nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))", "has other outputs for the same sample"),
        ("return Noisy(dataset)", "has other outputs for the same sample the second time"),
        (
            "return nn.Sequential(nn.InstanceNorm1d(1, track_running_stats=True), nn.Linear(3, 2))",
            "changes 0.running_mean",
        ),
        (
            "return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))",
            r"normalises over a batch in 1 \(BatchNorm1d\), and a batch may be .*; allowed: GroupNorm or LayerNorm",
        ),
        ("return Normalised()", r"normalises over a batch in norm \(BatchNorm1d\), and a batch may be of one sample"),
        ("m = nn.Linear(3, 2)\nm.other = nn.Parameter(x)\nreturn m", "does not use other"),
    ],
)
def test_unusable_models(setting, body, words):
    with pytest.raises(InputError, match=words) as fault:
        setting(net=body)
    assert fault.value.path == "workload.model"
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("override", "path", "words"),
    [
        ("workload.dataset=mine:nothing", "workload.dataset", "mine has no 'nothing'"),
        ("workload.dataset=nowhere:data", "workload.dataset", "'nowhere:data' cannot be found"),
        ("workload.dataset=mine:x", "workload.dataset", "'mine:x' is a Tensor; allowed: a function without arguments"),
        ("workload.dataset=mine:net", "workload.dataset", "'mine:net' needs dataset"),
        ("workload.model=mine:x", "workload.model", "is a Tensor; allowed: a function of 1 argument or none"),
        ("workload.model=torch.nn:Linear", "workload.model", "'torch.nn:Linear' needs in_features, out_features"),
        ("workload.model=cipher", "workload.model", "'cipher' takes images, and the dataset has numbers; allowed: mlp"),
        ("workload.partition=dirichlet", "workload.partition", "'mine:data' has no classes, which dirichlet needs"),
        ("workload.partition=label_shards", "workload.partition", "has no classes, which label_shards needs"),
        ("workload.partition=owners", "workload.partition", "has no owners of its samples; allowed: iid, shared"),
        ("workload.validation=0.001", "workload.validation", "0.001 of 90 samples is not a whole one"),
        ("target_accuracy=0.5", "target_accuracy", "the metric of 'mine:data' is rmse; allowed: target"),
    ],
)
def test_settings_that_do_not_fit_own_data(setting, override, path, words):
    with pytest.raises(InputError, match=words) as fault:
        setting(override)
    assert fault.value.path == path


def test_fewer_owners_than_workers(setting):
    with pytest.raises(InputError, match="2 owners of samples are fewer than the 3 workers"):
        setting("workload.partition=owners", data="return Dataset(x, y, x, y, Regression(2), owners=classes // 2)")


def test_what_the_users_code_raises_comes_as_it_is(setting):
    with pytest.raises(ZeroDivisionError):
        setting("workload.model=mine:broken")
    with pytest.raises(KeyError):
        setting(data="return {}[1]")


@pytest.mark.parametrize(
    ("body", "metric", "outputs"),
    [
        ("return x, classes, x, classes", "accuracy", 4),
        ("return x, classes.to(torch.uint8), x, classes.to(torch.int32)", "accuracy", 4),
        ("return tokens, tokens, tokens, tokens + 2", "perplexity", 9),
        ("return Dataset(x, classes, x, classes)", "accuracy", 4),
        ("return Dataset(tokens, tokens, tokens, tokens + 2)", "perplexity", 9),
        ("return Dataset(x, y, x, y, owners=classes)", "rmse", 2),
        ("return x.double(), y[:, 0].double(), x.double(), y[:, 0].double()", "rmse", 1),
        ("return (255 * x.sigmoid()).to(torch.uint8), y, (255 * x.sigmoid()).to(torch.uint8), y", "rmse", 2),
    ],
)
def test_the_task_follows_from_the_targets(setting, body, metric, outputs):
    net = f"return nn.Embedding(9, {outputs})" if metric == "perplexity" else f"return nn.Linear(3, {outputs})"
    made = setting(data=body, net=net)
    assert manifest_fields(made)["metric"]["name"] == metric
    assert made.dataset.task.outputs == outputs
    assert made.dataset.sample.dtype == (torch.int64 if metric == "perplexity" else torch.float32)
    assert sum(map(sum, manifest_fields(made)["partition"])) == 90
    assert len(manifest_fields(made)["partition"][0]) == (4 if metric == "accuracy" else 1)


def test_a_validation_split_is_of_all_samples_where_there_are_no_classes(setting):
    assert manifest_fields(setting("workload.validation=0.2"))["validation"] == [18]


def test_random_numbers_are_the_same_at_each_call_and_those_of_others_left_alone(setting):
    body = "a = torch.randn(90, 3) + float(np.random.rand())\nreturn a, y, a, y"
    before = torch.get_rng_state()
    one, other = (setting(f"seed={seed}", data=body).dataset.train_inputs for seed in (1, 2))
    assert torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)
