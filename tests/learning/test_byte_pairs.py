from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.learning.datasets.byte_pairs import _WORDS, BytePairs, learn_merges
from dlion_sim.learning.datasets.shakespeare import parts, works

TEXTS = st.text(alphabet="ab A\n,.", max_size=60)


def learnt_naively(text, merges):
    """Count all pairs of all words anew for each merge."""
    words = [[*word] for word in _WORDS.findall(text)]
    learnt = []
    for _ in range(merges):
        counts = Counter(pair for word in words for pair in pairwise(word))
        pair = max(counts, key=lambda pair: (counts[pair], pair))
        learnt.append(pair)
        for word in words:
            place = 0
            while place < len(word) - 1:
                if (word[place], word[place + 1]) == pair:
                    word[place : place + 2] = ["".join(pair)]
                place += 1
    return learnt, [token for word in words for token in word]


def test_the_most_frequent_pair_is_merged_first():
    assert learn_merges("low low lower newest", 3) == [("o", "w"), ("l", "ow"), (" ", "low")]


@given(TEXTS.filter(lambda text: sum(len(word) - 1 for word in _WORDS.findall(text)) > 3))
def test_merges_and_tokens_are_those_of_the_definition(text):
    merges = 1
    expected, tokens = learnt_naively(text, merges)
    assert learn_merges(text, merges) == expected
    assert BytePairs("ab A\n,.", expected).encode(text) == tokens


def test_many_merges_are_those_of_the_definition():
    text = works()["phoenix_and_the_turtle"]
    expected, tokens = learnt_naively(text, 60)
    assert learn_merges(text, 60) == expected
    assert BytePairs(set(text), expected).encode(text) == tokens


@given(TEXTS, TEXTS)
def test_a_text_is_its_tokens_one_after_another(text, other):
    pairs = BytePairs("ab A\n,.", [("a", "b"), ("ab", "a"), (" ", "a"), ("b", "b"), ("\n", "\n")])
    assert "".join(pairs.encode(text + other)) == text + other
    assert set(pairs.encode(text)) <= set(pairs.vocabulary)


def test_those_that_ship_were_learnt_from_the_training_text():
    count = 8  # all would take seconds
    shipped = files("dlion_sim.learning.datasets").joinpath("texts", "shakespeare_merges.json").read_text()
    training = "".join(parts(text)[0] for text in works().values())
    assert [[*pair] for pair in learn_merges(training, count)] == json.loads(shipped)[:count]
    assert len(json.loads(shipped)) == 512
