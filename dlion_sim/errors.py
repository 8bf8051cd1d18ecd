"""The errors that are the user's to mend. A leaf: everything may import it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

_LONG_WORD = re.compile(r"(\S{150})\S{100,}(\S{50})")


class InputError(Exception):
    """Something that the user gave cannot be used.

    Reads as one line: the file, the path inside it, what is wrong, what is allowed; of words without end, such as names
    of thousands of letters, it has both ends. Further faults found in the same input stand in `further`, so that all
    can be mended at once. What the caller of a function gave as an argument is called by its name, in backticks.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        path: str | None = None,
        allowed: str | None = None,
        further: Sequence[InputError] = (),
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.file = file
        self.path = path
        self.allowed = allowed
        self.further = tuple(further)

    @classmethod
    def joined(cls, faults: Sequence[InputError], most: int = 10) -> InputError:
        """The first fault, with the others as its further ones; of many, the first ones and the number of others."""
        first, *others = faults
        more = f" (and {len(faults) - most} more)" if len(faults) > most else ""
        further = [*first.further, *others[: most - 1]]
        return cls(first.problem + more, file=first.file, path=first.path, allowed=first.allowed, further=further)

    def within(self, file: str | Path | None) -> InputError:
        """The same fault, said to lie in `file` where it names none yet."""
        return InputError(
            self.problem,
            file=self.file or file,
            path=self.path,
            allowed=self.allowed,
            further=[fault.within(file) for fault in self.further],
        )

    def below(self, path: str) -> InputError:
        """The same fault, its path being one inside `path`."""
        return InputError(
            self.problem,
            file=self.file,
            path=f"{path}.{self.path}" if self.path else path,
            allowed=self.allowed,
            further=[fault.below(path) for fault in self.further],
        )

    def __str__(self) -> str:
        where = "".join(f"{part}: " for part in (self.file, self.path) if part)
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return printable(_LONG_WORD.sub(r"\1...\2", " ".join(f"{where}{self.problem}{allowed}".split())))


class OwnCodeError(Exception):
    """Code of the user's own has raised something.

    `problem` is a line: the key that names it, what was raised, and where; `trace` has the frames in the user's code.
    """

    def __init__(self, problem: str, trace: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.trace = trace


def did_you_mean(name: object, names: Collection[str]) -> str:
    """ "; did you mean 'duration'?", or nothing when no name is near."""
    near = difflib.get_close_matches(str(name), names, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def printable(text: str) -> str:
    """The text with escapes, as Python writes them, for what a terminal would obey or could not show."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
