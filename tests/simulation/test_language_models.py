"""Language models in whole runs."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.learning import flatten, gradient_executor
from dlion_sim.learning.process import one_core
from dlion_sim.scenario import from_data, to_data
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

TINY = [
    "workload.dataset={name: shakespeare, context: 64}",
    "workload.model={name: gpt, layers: 1, heads: 2, width: 8}",
    "workload.evaluation_samples=50",
]
ALONE = [{"name": "lab", "workers": [{"count": 1, "compute": "4 cores", "nic": "50 Mbps"}]}]


def gpt(*overrides, **keys):
    return digits(*TINY, *overrides, **{"iterations": 3, "duration": None, **keys})


def alone(folder, optimizer):
    """A worker's losses on its own, and those of a loop that the value makes of a function that takes steps."""
    scenario = gpt(f"workload.optimizer={optimizer}", "system=local_sgd", iterations=8, cluster={"clouds": ALONE})
    losses = simulate(scenario, folder / "run").iterations()["loss"].tolist()
    setting = Setting.of(scenario)
    model, sampler, data = setting.model, setting.sampler(0), setting.dataset

    def plain(step):
        for _ in losses:
            batch = sampler.take(16)
            loss = cross_entropy(model(data.train_inputs[batch]).flatten(0, 1), data.train_targets[batch].flatten())
            model.zero_grad()
            loss.backward()
            step()
            yield loss.item()

    return losses, model, plain


def test_a_single_worker_equals_a_plain_loop_of_sgd_to_the_bit(tmp_path):
    losses, model, plain = alone(tmp_path, "{kind: sgd, learning_rate: 0.1}")
    with one_core():
        assert losses == list(plain(torch.optim.SGD(model.parameters(), 0.1).step))


@pytest.mark.parametrize("norm", [None, 0.5])
def test_a_single_worker_equals_a_plain_loop_of_adamw(norm, tmp_path):
    """To the bit; but a gradient's length taken at once is rounded otherwise than one from its variables' lengths."""
    optimizer = "{kind: adamw, learning_rate: 0.01, weight_decay: 0.1, warmup: 2, schedule: {kind: cosine, steps: 4, "
    losses, model, plain = alone(tmp_path, f"{optimizer}end: 0.1}}, clip_norm: {norm or 'null'}}}")
    adamw = torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.1)

    def factor(step):
        return (step + 1) / 3 if step < 2 else 0.1 + 0.9 * (1 + math.cos(math.pi * min(1, (step - 2) / 4))) / 2

    schedule = torch.optim.lr_scheduler.LambdaLR(adamw, factor)

    def step():
        if norm is not None:
            assert torch.nn.utils.clip_grad_norm_(model.parameters(), norm) > norm
        adamw.step()
        schedule.step()

    with one_core():
        own = list(plain(step))
    assert losses == (own if norm is None else pytest.approx(own, rel=1e-5))


@pytest.mark.parametrize("system", ["baseline", "dlion", "diloco", "ako", "parameter_server"])
@pytest.mark.parametrize("lora", [None, 2])
def test_systems_train_language_models_and_adapters(system, lora, tmp_path):
    overrides = [f"system={system}", *([f"workload.lora={{rank: {lora}}}"] if lora else [])]
    run = simulate(gpt(*overrides), tmp_path / "run")
    assert run.summary["status"] == "completed"
    assert run.evaluations()["metric"].between(20, 110).all()


def test_only_adapters_cross_links(tmp_path):
    run = simulate(gpt("system=baseline", "workload.lora={rank: 2, alpha: 4}"), tmp_path / "run")
    adapters = 2 * (8 + 24 + 8 + 8 + 8 + 32 + 32 + 8)
    assert run.manifest["parameters"] == adapters
    assert len(run.transfers()) == 3 * 3 * 2
    assert (run.transfers()["bytes"] - 4 * adapters).between(1, 64).all()


def test_adapters_begin_as_the_base_model_and_do_not_change_it(tmp_path):
    plain, adapted = (Setting.of(gpt(*extra)) for extra in ([], ["workload.lora={rank: 2}"]))
    base = dict(plain.model.named_parameters())
    frozen = {name.replace(".frozen", ""): buffer for name, buffer in adapted.model.named_buffers()}
    assert sorted(frozen) == sorted(base)
    before = {name: buffer.clone() for name, buffer in frozen.items()}
    for name, parameter in base.items():
        assert torch.equal(frozen[name], parameter), name
    executor = gradient_executor(adapted.model, adapted.dataset, adapted.device, replicas=1)
    worker = adapted.worker(0)
    for _ in range(3):
        _, gradient = executor.result(executor.submit(worker.replica, adapted.sampler(0).take(8)))
        worker.replica.step(gradient)
    executor.close()
    assert not torch.equal(worker.replica.parameters, flatten(adapted.model))
    assert all(torch.equal(buffer, before[name]) for name, buffer in frozen.items())


def test_a_base_is_found_beside_the_scenario_and_identified_by_its_digest(tmp_path):
    torch.save(Setting.of(gpt("seed=7")).model.state_dict(), tmp_path / "base.pt")
    data = to_data(gpt())
    data["workload"]["lora"] = {"rank": 2, "base": "base.pt"}
    setting = Setting.of(from_data(data, folder=tmp_path))
    assert torch.equal(
        setting.model.token_embedding_head.weight, Setting.of(gpt("seed=7")).model.token_embedding_head.weight
    )
    resolved = setting.scenario
    assert resolved.workload.lora.base == str(tmp_path / "base.pt")
    assert Setting.of(from_data(to_data(resolved))).scenario == resolved
    torch.save(Setting.of(gpt("seed=8")).model.state_dict(), tmp_path / "base.pt")
    with pytest.raises(InputError, match=r"workload\.lora\.base: .*base\.pt has changed"):
        Setting.of(resolved)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["workload.model=cipher"], "workload.model: 'cipher' takes images, and the dataset has tokens; allowed: gpt"),
        (["workload.model.width=9"], "workload.model: a width of 9 cannot be divided among 2 heads"),
        (["workload.model.depth=3"], "workload.model: unknown key 'depth'"),
        (["workload.model.layers=0"], "workload.model.layers: must be 1 or more, not 0"),
        (["workload.dataset.tokenizer=words"], "workload.dataset.tokenizer: 'words' is unknown"),
        (["workload.dataset={name: digits, context: 3}"], "workload.dataset.name: 'digits' is unknown"),
        (["workload.lora={rank: 2, targets: [query]}"], "workload.lora.targets: no dense layer is named 'query'"),
        (["workload.lora={rank: 0}"], "workload.lora.rank: must be 1 or more, not 0"),
        (["workload.lora={base: /no/where.pt}"], "workload.lora.base: /no/where.pt is missing"),
        (["workload.lora={base: /}"], "workload.lora.base: / cannot be read: Is a directory"),
        (['workload.lora={base: "/a\\0b"}'], r"workload.lora.base: /a\x00b cannot be read: embedded null byte"),
        (
            [f"workload.lora={{base_sha256: {'a' * 64}}}"],
            "workload.lora.base_sha256: has no file to apply to",
        ),
    ],
)
def test_an_error_message_is_one_line(overrides, line):
    with pytest.raises(InputError) as told:
        Setting.of(gpt(*overrides))
    assert line in str(told.value)


def test_a_resolved_scenario_has_every_default():
    workload = to_data(Setting.of(digits("workload.dataset=shakespeare", "workload.model=gpt")).scenario)["workload"]
    assert workload["dataset"] == {"name": "shakespeare", "context": 64, "tokenizer": "characters"}
    assert workload["model"] == {"name": "gpt", "layers": 4, "heads": 4, "width": 128}
    assert to_data(digits())["workload"]["dataset"] == "digits"
