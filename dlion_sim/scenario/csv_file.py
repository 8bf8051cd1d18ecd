"""CSV files that a scenario names."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlion_sim.errors import InputError
from dlion_sim.files import read_unpacked
from dlion_sim.scenario.faults import RuleError

if TYPE_CHECKING:
    import pandas as pd


def csv_table(what: str, file: Path, most: int, **how: Any) -> pd.DataFrame:
    """A CSV file of at most so many bytes, perhaps compressed (.csv.gz), as pandas reads it.

    Raises RuleError, with `what` the file is, if it cannot be read.
    """
    import pandas as pd  # most of a second to import, and few scenarios have such files

    try:
        table: pd.DataFrame = pd.read_csv(io.BytesIO(read_unpacked(file, most)), **how)
        return table
    except InputError as error:
        raise RuleError(f"{what} {file} {error.problem}", allowed=error.allowed) from None
    except (ValueError, csv.Error, pd.errors.ParserWarning) as error:
        raise RuleError(f"{what} {file} is not a readable CSV file: {' '.join(str(error).split())}") from None
