"""The table that `python -m emulation.validate` makes."""

import pandas as pd
import pytest

from emulation.distribution import FIGURES, TITLES, distribution, markdown, of_further
from emulation.further import FURTHER

FURTHER_COLUMNS = [column for name in FURTHER for column in of_further(name)]


def table(*rows):
    """Figures of scenarios in the order of FIGURES; a text is a problem."""
    records = []
    for number, row in enumerate(rows):
        figures = dict.fromkeys(FIGURES, None) if isinstance(row, str) else dict(zip(FIGURES, row, strict=True))
        figures |= dict.fromkeys(FURTHER_COLUMNS, None)
        problem = row if isinstance(row, str) else ""
        records.append({"scenario": f"s{number}", "workers": 3, **figures, "late": 0.001, "problem": problem})
    return pd.DataFrame(records).astype(dict.fromkeys([*FIGURES, *FURTHER_COLUMNS], float))


KNOWN = [[0.01 * n, 0.0, 0.02, 0.5 * n, 0.1 * n, 1.0 * n] for n in range(1, 6)]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_median_95th_percentile_and_worst_are_those_of_the_figures():
    found = distribution(table(*KNOWN))
    assert found.index.tolist() == ["median", "95th percentile", "worst"]
    assert found["iteration_median"].tolist() == pytest.approx([0.03, 0.048, 0.05])
    assert found["bytes"].tolist() == pytest.approx([0.02] * 3)
    assert found["accuracy_at_worst"].tolist() == pytest.approx([3, 4.8, 5])


def test_the_markdown_shows_all_rows_and_how_many_are_within_tolerances():
    lines = markdown(table(*KNOWN)).splitlines()
    assert cells(lines[2]) == ["`s0`", "3", "1.0%", "0.0%", "2.0%", "0.5", "0.1", "1.0", "0.1%"]
    assert len({line.count("|") for line in lines[:7]}) == 1
    within = cells(lines[-1])
    assert within[0] == "within tolerance"
    assert within[1] == "5 of 5 within 5.0%"
    assert within[-1] == "2 of 5 within 2.0"


def test_what_failed_is_said_and_in_no_figure():
    text = markdown(table(*KNOWN, "failed: a | b", "not run"))
    assert "| `s5` | 3 | failed: a \\| b |" in text
    assert "| `s6` | 3 | not run |" in text
    assert "Not in the distribution: 2 of 7" in text
    assert "| median | 3.0%" in text
    assert "nan" not in text


def test_where_nothing_was_exchanged_the_other_figures_count():
    text = markdown(table(*KNOWN, [0.06, 0.0, None, 0.0, 0.0, 0.0]))
    assert "| 6.0% | 0.0% | nothing exchanged | 0.0 |" in text
    assert "| 5 of 6 within 5.0% | 6 of 6 within 5.0% | 5 of 5 within 5.0% |" in text


def test_a_table_of_failures_alone_is_readable():
    text = markdown(table("not run"))
    assert "| median | - | - |" in text
    assert "0 of 0" in text


def test_what_is_beyond_its_mark_stands_beside_another_emulation_and_packets():
    known = table([0.10, 0.02, 0.06, 0.0, 0.0, 3.0], [0.04, 0.02, 0.04, 0.0, 0.0, 0.0])
    known[of_further("again")] = [[0.12, 0.01, 0.01, 0.0, 0.0, 1.0], [0.0, 0.01, 0.09, 0.0, 0.0, 0.0]]
    known.loc[0, of_further("packets")] = [0.03, 0.01, 0.02, 0.0, 0.0, 4.0]
    *over, _, heading, _, median, bytes_, worst = map(cells, markdown(known).splitlines())
    assert over[2][2:8] == ["10.0%", "2.0%", "6.0%", "0.0", "0.0", "3.0"]
    assert [row[:2] for row in over[-6:]] == [
        ["emulated again, median", "6.0%"],
        ["emulated again, 95th percentile", "11.4%"],
        ["emulated again, within tolerance", "1 of 2 within 5.0%"],
        ["simulated by packets, median", "3.0%"],
        ["simulated by packets, 95th percentile", "3.0%"],
        ["simulated by packets, within tolerance", "1 of 1 within 5.0%"],
    ]
    assert heading == ["beyond its mark", "", "simulated", "emulated again", "simulated by packets"]
    assert median == ["`s0`", "median iteration", "10.0%", "12.0%", "3.0%"]
    assert bytes_ == ["`s0`", "bytes of a link", "6.0%", "1.0%", "2.0%"]
    assert worst == ["`s0`", "at worst", "3.0", "1.0", "4.0"]


def test_each_further_comparison_has_a_title():
    assert [*TITLES] == [*FURTHER]


def test_without_further_comparisons_nothing_is_said_of_them():
    text = markdown(table([0.10, 0.02, 0.06, 0.0, 0.0, 3.0]))
    assert "again" not in text
    assert "beyond" not in text
