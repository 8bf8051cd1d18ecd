"""Tables in narrow terminals."""

import pytest
from rich.console import Console

from dlion_sim.cli.fitting import Fitted

TABLE = Fitted(
    ["system", "time to 70 %\n(s)", "speed-up\n(pairs)"],
    [["dlion, weights share", "> 30.0 (0 of 1)", "1.25 [1.1 to 1.4] (3)"], ["ako", "7.5", "0.98 (3)"]],
    numbers=["time to 70 %\n(s)", "speed-up\n(pairs)"],
)


def printed(capsys, width):
    Console(width=width).print(TABLE)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", range(37, 80))
def test_numeric_cells_break_only_before_brackets(capsys, width):
    told = printed(capsys, width)
    assert all(whole in told for whole in ("> 30.0", "(0 of 1)", "1.25", "[1.1 to 1.4]", "0.98"))
    assert max(map(len, told.splitlines())) <= width


def test_numeric_cells_stay_on_one_line_if_they_fit(capsys):
    told = printed(capsys, 80)
    assert "> 30.0 (0 of 1)" in told
    assert "1.25 [1.1 to 1.4] (3)" in told


def test_a_paragraph_is_named_by_its_non_empty_labels(capsys):
    table = Fitted(["runs", "system", "longest"], [["live", "dlion", "1"], ["", "dlion", "2"]], names=2)
    Console(width=12).print(table)
    assert [line.strip() for line in capsys.readouterr().out.splitlines() if "dlion" in line] == [
        "live, dlion",
        "dlion",
    ]
