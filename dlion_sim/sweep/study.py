"""The trials of a search: chosen by Optuna, in a file that Optuna's tools can read."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.streams import stream_seed
from dlion_sim.sweep import metric, space
from dlion_sim.sweep.loading import SearchSpec
from dlion_sim.sweep.state import changes

if TYPE_CHECKING:
    from optuna import Study as OptunaStudy
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

STUDY = "study.db"
_NAME = "search"


class Study:
    """The trials so far; each change is complete on disk when the call returns."""

    def __init__(self, spec: SearchSpec, output: Path, *, keep: bool = True) -> None:
        """Continue the study in the folder `output`, or start one; unless `keep`, without a file.

        Raises InputError if Optuna is missing or the file cannot be used.
        """
        try:
            import optuna
        except ImportError:
            raise InputError("a search needs the package optuna", allowed="pip install 'dlion-sim[search]'") from None
        from optuna.exceptions import StorageInternalError
        from optuna.storages import InMemoryStorage, RDBStorage
        from sqlalchemy.exc import SQLAlchemyError

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._spec = spec
        self._meant: dict[str, Any] = {}
        self._file = file = output / STUDY
        try:
            # SQLite is atomic under kills. Connected here, as a path may have characters that a URL may not.
            connect = {"creator": partial(sqlite3.connect, file)}
            in_file = keep or file.exists()
            self._storage = RDBStorage("sqlite://", engine_kwargs=connect) if in_file else InMemoryStorage()
            self._optuna = self._study()
        except (StorageInternalError, SQLAlchemyError, RuntimeError) as error:
            problem = str(error).splitlines()[0]
            raise InputError(f"cannot be used: {problem}", file=file, allowed="a study that a search wrote") from error

    @property
    def trials(self) -> Sequence[FrozenTrial]:
        """All trials in order; active ones have no value yet."""
        return self._optuna.get_trials(deepcopy=False)

    def require(self, key: str, meant: Mapping[str, Any] | Sequence[str]) -> None:
        """Require this description of all trials. Raises InputError if existing trials have another one."""
        self._meant[key] = msgspec.json.decode(msgspec.json.encode(meant))  # as it will be read again
        former = self._optuna.user_attrs.get(key)
        if isinstance(former, dict) and isinstance(self._meant[key], list):
            former = sorted(former)  # Earlier states of the code kept a digest with each name.
        if self.trials and former != self._meant[key]:
            raise InputError(
                f"holds trials of a search whose {key} was another one{changes(former, self._meant[key])}",
                file=self._file,
                allowed="the former search, another `output`, or removing that folder",
            )

    def ask(self) -> FrozenTrial:
        """One more trial, with the values to try.

        They depend only on the search and the trials so far, so a killed search continues identically.
        """
        import optuna

        former = self.trials
        if not former:
            # Start again: a study without trials may be of another search.
            optuna.delete_study(study_name=_NAME, storage=self._storage)
            self._optuna = self._study()
            for key, meant in self._meant.items():
                self._optuna.set_user_attr(key, meant)
        # In memory, as Optuna writes a trial's values one by one, and a kill may come between them.
        sampler = _sampler(self._spec, len(former))
        draft = optuna.create_study(direction=metric.direction(self._spec.metric), sampler=sampler)
        draft.add_trials(former)
        distributions = {path: space.distribution(dimension) for path, dimension in self._spec.over.items()}
        asked = draft.ask(distributions)
        self._optuna.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params={path: space.rounded(self._spec.over[path], chosen) for path, chosen in asked.params.items()},
                distributions=distributions,
            )
        )
        return self.trials[-1]

    def succeed(self, number: int, value: float) -> None:
        """Store the result of a trial."""
        self._optuna.tell(number, value)

    def fail(self, number: int) -> None:
        """Mark a trial as failed."""
        from optuna.trial import TrialState

        self._optuna.tell(number, state=TrialState.FAIL)

    def _study(self) -> OptunaStudy:
        """The study in the storage, created if missing."""
        import optuna

        direction = metric.direction(self._spec.metric)
        return optuna.create_study(study_name=_NAME, storage=self._storage, direction=direction, load_if_exists=True)


def _sampler(spec: SearchSpec, number: int) -> BaseSampler:
    from optuna.samplers import RandomSampler, TPESampler

    # New for each trial, as Optuna does not store the state of random numbers.
    seed = stream_seed(spec.seed, "trial", number) % 2**32
    if spec.sampler == "random":
        return RandomSampler(seed)
    # With the constant liar, active trials count as bad ones, so that no two try the same.
    return TPESampler(seed=seed, constant_liar=True)
