"""Shakespeare's works, to tell how they go on: 37 plays and 5 volumes of poems, 5.1 million characters. Embedded."""

from __future__ import annotations

import bz2
import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Literal

import torch
from torch import Tensor

from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.byte_pairs import BytePairs
from dlion_sim.learning.datasets.dataset import Dataset
from dlion_sim.learning.tasks import NextToken

Tokenizer = Literal["characters", "bpe"]

_TEST = 10
"""One part of so many of each work, its last, is for the test."""


def shakespeare(*, context: int = 64, tokenizer: Tokenizer = "characters", test_samples: int | None = None) -> Dataset:
    """Sequences of `context` tokens, one after another, with the token after each; no sequence is of two works.

    The last tenth of each work is for the test: `test_samples` of its sequences, by default all, in an order that is
    random and always the same, so that the first ones are of all works. A sample's owner is its work, numbered by
    title, and not whoever speaks: most sequences are of several, and the works name them in different ways. Tokens are
    the 84 characters, or those and the 512 merges of a byte-pair encoding that was learnt from the training text.

    `texts/shakespeare.json.bz2` is made of what `texts/NOTICE` names: a JSON object of the texts by their files' names
    without "_gut.txt", in alphabetical order, by Python's json.dumps, compressed by bz2.compress.
    `texts/shakespeare_merges.json` is what `learn_merges` makes of all training parts, one after another. Raises
    InputError where the context is too long for any sequence, and for more `test_samples` than there are.
    """
    tokens, vocabulary = _tokens(tokenizer)
    most = max(len(of_work) for _, of_work in tokens) - 1
    if context > most:
        raise InputError(
            f"no part for the test has {context + 1} tokens", path="dataset.context", allowed=f"1 to {most}"
        )
    train = [_sequences(of_work, context) for of_work, _ in tokens]
    test = [_sequences(of_work, context) for _, of_work in tokens]
    of_train, of_test = torch.cat(train).long(), _in_any_order(torch.cat(test).long())
    if test_samples is not None and not 0 < test_samples <= len(of_test):
        raise InputError(
            f"{test_samples} samples for the test", path="dataset.test_samples", allowed=f"1 to {len(of_test)}"
        )
    of_test = of_test[:test_samples]
    samples = torch.tensor([len(sequences) for sequences in train])
    return Dataset(
        name="shakespeare",
        train_inputs=of_train[:, :-1].contiguous(),
        train_targets=of_train[:, 1:].contiguous(),
        test_inputs=of_test[:, :-1].contiguous(),
        test_targets=of_test[:, 1:].contiguous(),
        task=NextToken(vocabulary=vocabulary),
        owners=torch.arange(len(train)).repeat_interleave(samples),
    )


@cache
def works() -> dict[str, str]:
    """The texts by title, in alphabetical order."""
    texts: dict[str, str] = json.loads(bz2.decompress(_file("shakespeare.json.bz2")))
    return texts


def parts(text: str) -> tuple[str, str]:
    """What of a work is for training, and for the test."""
    cut = len(text) - len(text) // _TEST
    return text[:cut], text[cut:]


@cache
def _tokens(tokenizer: Tokenizer) -> tuple[list[tuple[Tensor, Tensor]], int]:
    """Both parts of each work as tokens, int16 [T] each, and how many different ones there are."""
    numbers, vocabulary = _by_pairs() if tokenizer == "bpe" else _by_characters()
    split = map(parts, works().values())
    return [(numbers(train), numbers(test)) for train, test in split], vocabulary


def _by_characters() -> tuple[Callable[[str], Tensor], int]:
    """What numbers the characters of a text, and how many different ones there are."""
    table = torch.zeros(128, dtype=torch.int16)
    for number, character in enumerate(_characters()):
        table[ord(character)] = number
    return lambda text: table[torch.frombuffer(bytearray(text, "ascii"), dtype=torch.uint8).long()], len(_characters())


def _by_pairs() -> tuple[Callable[[str], Tensor], int]:
    """The same, of the tokens of a byte-pair encoding."""
    merges = [(one, other) for one, other in json.loads(_file("shakespeare_merges.json"))]
    pairs = BytePairs(_characters(), merges)
    numbers = {token: number for number, token in enumerate(pairs.vocabulary)}
    return lambda text: torch.tensor([numbers[token] for token in pairs.encode(text)], dtype=torch.int16), len(numbers)


@cache
def _characters() -> list[str]:
    return sorted(set().union(*works().values()))


def _file(name: str) -> bytes:
    return files(__package__).joinpath("texts", name).read_bytes()


def _in_any_order(sequences: Tensor) -> Tensor:
    return sequences[torch.randperm(len(sequences), generator=torch.Generator().manual_seed(0))]


def _sequences(tokens: Tensor, context: int) -> Tensor:
    """All of one text [N, context + 1]; the last token of each is the first of the next."""
    if len(tokens) <= context:
        return tokens.new_empty(0, context + 1)
    return tokens.unfold(0, context + 1, context)
