from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest
import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import load
from dlion_sim.learning.datasets.shakespeare import parts, works


def test_the_works_are_all_there():
    assert len(works()) == 42
    assert sum(map(len, works().values())) == 5_057_198
    assert "To be, or not to be,--that is the question" in works()["hamlet"]


def test_the_shipped_texts_are_those_of_the_notice():
    texts = files("dlion_sim.learning.datasets").joinpath("texts")
    notice = texts.joinpath("NOTICE").read_text()
    assert "Creative Commons Attribution 2.5" in notice
    for name in ("shakespeare.json.bz2", "shakespeare_merges.json"):
        assert f"{hashlib.sha256(texts.joinpath(name).read_bytes()).hexdigest()}  {name}" in notice


@pytest.mark.parametrize("tokenizer", ["characters", "bpe"])
def test_samples_are_the_text_in_order_and_targets_what_follows(tokenizer):
    dataset = load("shakespeare", context=50, tokenizer=tokenizer)
    assert dataset.train_inputs.dtype == dataset.train_targets.dtype == torch.int64
    assert dataset.train_inputs.shape == dataset.train_targets.shape
    assert torch.equal(dataset.train_inputs[:, 1:], dataset.train_targets[:, :-1])
    first_work = dataset.owners == 0
    assert torch.equal(dataset.train_inputs[first_work][1:, 0], dataset.train_targets[first_work][:-1, -1])
    if tokenizer == "characters":
        text, alphabet = next(iter(works().values())), sorted(set().union(*works().values()))
        assert "".join(alphabet[token] for token in dataset.train_inputs[0]) == text[:50]
    assert dataset.task.vocabulary == {"characters": 84, "bpe": 596}[tokenizer]
    assert int(dataset.train_inputs.max()) < dataset.task.vocabulary


def test_the_last_tenth_of_each_work_is_for_the_test():
    dataset = load("shakespeare", context=64)
    assert len(dataset.owners.unique()) == 42
    for owner, text in enumerate(works().values()):
        train, test = parts(text)
        assert train + test == text
        assert len(test) == len(text) // 10
        assert (dataset.owners == owner).sum() == (len(train) - 1) // 64
    assert len(dataset.test_inputs) == sum((len(text) // 10 - 1) // 64 for text in works().values())


def test_a_context_longer_than_any_part_for_the_test_is_refused():
    assert len(load("shakespeare", context=16_384).test_inputs) >= 1
    with pytest.raises(InputError, match=r"dataset\.context: no part for the test has 20001 tokens"):
        load("shakespeare", context=20_000)


def test_some_test_samples_are_of_many_works():
    whole, some = load("shakespeare", context=64), load("shakespeare", context=64, test_samples=100)
    assert torch.equal(some.test_inputs, whole.test_inputs[:100])
    assert torch.equal(some.test_targets, whole.test_targets[:100])
    last_tenths = [parts(text)[1] for text in works().values()]
    alphabet = sorted(set().union(*works().values()))
    sampled = ["".join(alphabet[token] for token in tokens) for tokens in some.test_inputs]
    found = [next(work for work, text in enumerate(last_tenths) if each in text) for each in sampled]
    assert len(set(found)) > 20


@pytest.mark.parametrize("count", [0, 7882])
def test_more_test_samples_than_there_are_are_refused(count):
    with pytest.raises(InputError, match=rf"dataset\.test_samples: {count} samples for the test; allowed: 1 to 7881"):
        load("shakespeare", context=64, test_samples=count)
