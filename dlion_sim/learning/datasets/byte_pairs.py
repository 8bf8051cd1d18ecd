"""Byte-pair encoding (Sennrich et al., ACL 2016): pairs of tokens that often stand together become tokens.

Words are encoded one by one, each with the blanks before it, so that no token goes over the end of a word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

Pair = tuple[str, str]

_WORDS = re.compile(r" ?[A-Za-z]+| ?[^A-Za-z\s]+|\s+")
"""Whatever it finds in a text, one after another, is the whole text."""


def learn_merges(text: str, merges: int) -> list[Pair]:
    """The pairs to merge, in their order: each is the most frequent one after those before it.

    Of equally frequent ones it is the last by the alphabet, so that a text always has the same.
    """
    counts = Counter(_WORDS.findall(text))
    words = {word: [*word] for word in counts}
    frequencies: Counter[Pair] = Counter()
    places: dict[Pair, set[str]] = {}
    for word, tokens in words.items():
        _count(tokens, word, counts[word], frequencies, places)
    learnt = []
    for _ in range(merges):
        pair = max(frequencies, key=lambda pair: (frequencies[pair], pair))
        learnt.append(pair)
        for word in places.pop(pair):
            _count(words[word], word, -counts[word], frequencies, places)
            words[word] = _merged(words[word], pair)
            _count(words[word], word, counts[word], frequencies, places)
        del frequencies[pair]
    return learnt


class BytePairs:
    """Texts of these characters as tokens: `vocabulary` has them all, the characters first, then what is merged."""

    def __init__(self, characters: Iterable[str], merges: Sequence[Pair]) -> None:
        self.vocabulary = [*characters, *dict.fromkeys(one + other for one, other in merges)]
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._known: dict[str, list[str]] = {}

    def encode(self, text: str) -> list[str]:
        tokens: list[str] = []
        for word in _WORDS.findall(text):
            if word not in self._known:
                self._known[word] = self._encoded(word)
            tokens.extend(self._known[word])
        return tokens

    def _encoded(self, word: str) -> list[str]:
        tokens = [*word]
        while known := [pair for pair in pairwise(tokens) if pair in self._ranks]:
            tokens = _merged(tokens, min(known, key=self._ranks.__getitem__))
        return tokens


def _merged(tokens: Sequence[str], pair: Pair) -> list[str]:
    """The tokens, with each such pair as one."""
    merged: list[str] = []
    place = 0
    while place < len(tokens):
        together = tuple(tokens[place : place + 2]) == pair
        merged.append("".join(pair) if together else tokens[place])
        place += 2 if together else 1
    return merged


def _count(
    tokens: Sequence[str], word: str, count: int, frequencies: Counter[Pair], places: dict[Pair, set[str]]
) -> None:
    """Count the pairs of a word, which a text has `count` times, and note the word with each."""
    for pair in pairwise(tokens):
        frequencies[pair] += count
        places.setdefault(pair, set()).add(word)
