"""The table that `python -m emulation.validate` makes."""

import pandas as pd
import pytest

from emulation.distribution import FIGURES, ITSELF, distribution, markdown


def table(*rows):
    """Figures of scenarios in the order of FIGURES; a text is a problem."""
    records = []
    for number, row in enumerate(rows):
        figures = dict.fromkeys(FIGURES, None) if isinstance(row, str) else dict(zip(FIGURES, row, strict=True))
        figures |= dict.fromkeys(ITSELF, None)
        problem = row if isinstance(row, str) else ""
        records.append({"scenario": f"s{number}", "workers": 3, **figures, "late": 0.001, "problem": problem})
    return pd.DataFrame(records).astype(dict.fromkeys([*FIGURES, *ITSELF], float))


KNOWN = [[0.01 * n, 0.0, 0.02, 0.5 * n, 0.1 * n, 1.0 * n] for n in range(1, 6)]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_median_95th_percentile_and_worst_are_those_of_the_figures():
    found = distribution(table(*KNOWN))
    assert found.index.tolist() == ["median", "95th percentile", "worst"]
    assert found["iteration_median"].tolist() == pytest.approx([0.03, 0.048, 0.05])
    assert found["bytes"].tolist() == pytest.approx([0.02] * 3)
    assert found["accuracy_at_worst"].tolist() == pytest.approx([3, 4.8, 5])


def test_the_markdown_shows_all_rows_and_how_many_are_within_the_marks():
    lines = markdown(table(*KNOWN)).splitlines()
    assert cells(lines[2]) == ["`s0`", "3", "1.0%", "0.0%", "2.0%", "0.5", "0.1", "1.0", "0.1%"]
    assert len({line.count("|") for line in lines[:7]}) == 1
    within = cells(lines[-1])
    assert within[0] == "within the mark"
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


def test_how_far_neighbouring_simulations_are_stands_beside_what_is_beyond_the_mark():
    known = table([0.10, 0.02, 0.06, 0.0, 0.0, 3.0], [0.04, 0.02, 0.08, 0.0, 0.0, 0.0])
    known[ITSELF] = [[0.12, 0.01, 0.01, 0.0, 0.0, 1.0], [0.0, 0.01, 0.09, 0.0, 0.0, 0.0]]
    lines = markdown(known).splitlines()
    assert cells(lines[2])[2:8] == ["10.0% (12.0%)", "2.0%", "6.0% (1.0%)", "0.0", "0.0", "3.0 (1.0)"]
    assert cells(lines[3])[2:8] == ["4.0%", "2.0%", "8.0% (9.0%)", "0.0", "0.0", "0.0"]
    assert cells(lines[-1]) == [
        "within the mark or that of its neighbours",
        "2 of 2",
        "2 of 2",
        "1 of 2",
        "2 of 2",
        "2 of 2",
        "1 of 2",
    ]
    assert cells(lines[-2])[1] == "11.4%"
