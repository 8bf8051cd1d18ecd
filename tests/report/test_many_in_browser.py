"""The page of many runs, as a browser shows it."""

import json

import pytest

from dlion_sim.report import Collected, many_page
from dlion_sim.results import find_runs
from tests.browser import complaints, show, wait
from tests.made_up import made_up_run
from tests.report.pages import CHOSEN, axis_titles, choose, drag
from tests.report.sweeps import made_up_sweep, priced_run

pytestmark = pytest.mark.browser

ROWS = """return [...document.querySelectorAll("#outcomes-table tbody tr")].map(
    (row) => [...row.cells].slice(1).map((cell) => cell.textContent));"""
NONE = "\N{EN DASH}"
LINES = """return document.querySelector(`#${arguments[0]} .plot`).data.filter((trace) => trace.showlegend !== false)
    .map((trace) => [trace.name, trace.x.filter((x) => x !== null).length]);"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Of a small sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    made_up_sweep(folder)
    made_up_run(folder / "failed", (0.1, 0.2), system="gaia", status="failed")
    file = folder / "report.html"
    file.write_text(many_page(Collected.of(find_runs([folder]))))
    return file


@pytest.fixture
def sweep(page, driver):
    """Its page, just opened."""
    show(driver, page)
    return driver


def sort_by(driver, heading):
    driver.execute_script(
        "[...document.querySelectorAll('.sort')].find((each) => each.textContent === arguments[0]).click()", heading
    )


def sorted_by(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('th[aria-sort]')].map((each) => [each.textContent, each.ariaSort])"
    )


def column(driver, place):
    return [row[place] for row in driver.execute_script(ROWS)]


def test_headings_sort_with_unknown_values_last(sweep):
    assert column(sweep, 0) == [*(each for each in ("5 Mbps", "20 Mbps", "100 Mbps") for _ in range(2)), "-"]
    assert sorted_by(sweep) == []
    sort_by(sweep, "Time to 60 % (s)")
    assert sorted_by(sweep) == [["Time to 60 % (s)", "ascending"]]
    upwards = [float(text.split(" ± ")[0].strip("> ")) for text in column(sweep, 4) if text != NONE]
    assert upwards == sorted(upwards)
    sort_by(sweep, "Time to 60 % (s)")
    assert sorted_by(sweep) == [["Time to 60 % (s)", "descending"]]
    downwards = [float(text.split(" ± ")[0].strip("> ")) for text in column(sweep, 4) if text != NONE]
    assert downwards == upwards[::-1]
    sort_by(sweep, "bandwidth")
    sort_by(sweep, "bandwidth")
    assert column(sweep, 0) == ["-"] + ["100 Mbps"] * 2 + ["20 Mbps"] * 2 + ["5 Mbps"] * 2
    assert complaints(sweep) == []


def test_the_table_is_operated_by_keys(sweep):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    def press(*keys):
        for key in keys:
            sweep.switch_to.active_element.send_keys(key)

    sweep.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    while sweep.switch_to.active_element.text != "Test accuracy (%)":
        press(Keys.TAB)
    press(Keys.ENTER)
    assert sorted_by(sweep) == [["Test accuracy (%)", "ascending"]]
    press(Keys.ENTER)
    assert sorted_by(sweep) == [["Test accuracy (%)", "descending"]], "the heading has not kept the focus"
    press(Keys.TAB, Keys.TAB)
    while sweep.switch_to.active_element.get_attribute("type") != "checkbox":
        press(Keys.TAB)
    press(Keys.SPACE)
    assert sweep.execute_script(CHOSEN) == [column(sweep, 1)[0]]
    assert complaints(sweep) == []


def test_a_selected_row_is_selected_in_all_views(sweep):
    everywhere = sum(count for _, count in sweep.execute_script(LINES, "curves"))
    sweep.execute_script("document.querySelectorAll('#outcomes-table tbody tr')[2].click()")
    chosen = sweep.execute_script(CHOSEN)
    assert len(chosen) == 1
    (line,) = sweep.execute_script(LINES, "curves")
    assert line[0] == chosen[0]
    assert line[1] < everywhere
    assert [name for name, _ in sweep.execute_script(LINES, "coordinates")] == chosen
    assert {name for name, _ in sweep.execute_script(LINES, "front")} == {"Pareto front", *chosen}
    assert sweep.execute_script("return document.querySelector('[role=status]').textContent") == "1 of 7 rows selected"
    sweep.execute_script("document.getElementById('clear').click()")
    assert sum(count for _, count in sweep.execute_script(LINES, "curves")) == everywhere
    assert complaints(sweep) == []


def test_a_box_in_the_parallel_coordinates_selects_rows(sweep):
    names = sweep.execute_script("return document.querySelector('#coordinates .plot').layout.xaxis.ticktext")
    assert names[:3] == ["bandwidth", "system", "Test accuracy (%)"]
    system = names.index("system")
    drag(sweep, "coordinates", (system - 0.2, system + 0.2), (0.45, 0.55))
    wait(sweep, "return document.querySelectorAll('#outcomes-table tr.chosen').length === 3")
    assert sweep.execute_script(CHOSEN) == ["dlion"] * 3
    for section in ("curves", "coordinates"):
        assert [name for name, _ in sweep.execute_script(LINES, section)] == ["dlion"]
    assert len(sweep.execute_script("return document.querySelector('#coordinates .plot').layout.selections")) == 1
    sweep.execute_script("document.querySelector('#outcomes-table tbody input').click()")
    assert len(sweep.execute_script(CHOSEN)) == 4
    assert not sweep.execute_script("return document.querySelector('#coordinates .plot').layout.selections")
    assert complaints(sweep) == []


def test_switches_change_axes_and_colours(driver, tmp_path):
    for seed, system in enumerate(("baseline", "dlion", "dlion")):
        priced_run(tmp_path / f"{system}{seed}", system=system, seed=seed)
    page = tmp_path / "report.html"
    page.write_text(many_page(Collected.of(find_runs([tmp_path]))))
    show(driver, page)
    assert axis_titles(driver, "curves") == ["Virtual time (s)", "Test accuracy (%)"]
    choose(driver, "curves", "Cost")
    assert axis_titles(driver, "curves") == ["Cost", "Test accuracy (%)"]
    choose(driver, "curves", "Sent over the LAN by all workers")
    assert axis_titles(driver, "curves") == ["Sent over the LAN by all workers (MB)", "Test accuracy (%)"]
    assert axis_titles(driver, "front") == ["Time to 80 % (s)", "Test accuracy (%)"]
    choose(driver, "front", "Cost and LAN bytes (MB)")
    assert axis_titles(driver, "front") == ["Cost", "LAN bytes (MB)"]
    light = driver.execute_script("return document.querySelector('#front .plot').data.at(-1).marker.color")
    driver.find_element("id", "theme").click()
    assert axis_titles(driver, "front") == ["Cost", "LAN bytes (MB)"]
    assert driver.execute_script("return document.querySelector('#front .plot').data.at(-1).marker.color") == light
    assert complaints(driver) == []


FRONT = "const [front] = document.querySelector('#front .plot').data; return front.x.map((x, at) => [x, front.y[at]]);"


def front_of(groups):
    """Of those whose values are no bounds, the shortest times and best scores that none other has both of, by time."""
    known = [group["outcome"] for group in groups if not group["outcome"]["time"]["bound"]]
    points = sorted((each["time"]["value"], each["final"]["value"]) for each in known if each["time"]["value"])
    return [
        [time, score]
        for time, score in points
        if not any((a, -b) != (time, -score) and a <= time and b >= score for a, b in points)
    ]


def test_the_front_is_of_the_rows_shown(sweep):
    groups = json.loads(sweep.execute_script("return document.getElementById('data').textContent"))["groups"]
    everyone = front_of(groups)
    assert sweep.execute_script(FRONT) == everyone
    sweep.execute_script("""for (const row of document.querySelectorAll("#outcomes-table tbody tr"))
        if (row.cells[2].textContent === "baseline") row.querySelector("input").click();""")
    baselines = front_of([group for group in groups if "baseline" in group["name"]])
    assert baselines not in ([], everyone)
    assert sweep.execute_script(FRONT) == baselines
    assert complaints(sweep) == []


def test_hostile_names_are_only_text(driver, tmp_path):
    name = "<img src=x onerror=alert(1)><b>&amp;</b>"
    made_up_run(tmp_path / "a", system=name, scenario=name)
    made_up_run(tmp_path / "b", system="dlion", scenario=name)
    page = tmp_path / "report.html"
    page.write_text(many_page(Collected.of(find_runs([tmp_path]))))
    show(driver, page)
    assert name in column(driver, 0)
    assert driver.title.startswith(name)
    driver.execute_script("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert driver.execute_script("return document.querySelectorAll('main img, main b').length") == 0
    assert complaints(driver) == []


def test_a_thousand_settings_are_shown(driver, tmp_path):
    """Their data are made here: it is the page that is tested."""
    made_up_sweep(tmp_path / "runs", bandwidths=["5 Mbps"], seeds=1, systems=["baseline"])
    from dlion_sim.report.many.page import SCRIPTS, SECTIONS, many_data
    from dlion_sim.report.page import render

    data = many_data(Collected.of(find_runs([tmp_path / "runs"])))
    group, line = data["groups"][0], {name: list(range(100)) for name in ("x", "mean", "low", "high")}
    data["groups"] = [{**group, "id": f"{number}", "name": f"setting {number}"} for number in range(1000)]
    data["axes"][0] |= {"values": ["baseline", "dlion"], "colours": ["#000000", "#ff0000"], "dashes": ["solid"] * 2}
    data["axes"][0] |= {"places": [number % 2 for number in range(1000)], "dark": ["#ffffff", "#ff0000"]}
    data["colouring"] = data["axes"][0]
    for curve in data["curves"]:
        curve["groups"] = [line] * 1000
    page = tmp_path / "report.html"
    page.write_text(render("many", SECTIONS, data, SCRIPTS))
    show(driver, page)
    assert driver.execute_script("return performance.now()") < 20_000
    driver.execute_script("document.querySelectorAll('#outcomes-table tbody tr')[500].click()")
    assert len(driver.execute_script(CHOSEN)) == 1
    assert complaints(driver) == []


BROKEN = """const broken = [];
    for (const cell of document.querySelectorAll("#outcomes-table th, #outcomes-table td")) {
        if (cell.querySelector(".unseen")) continue;
        const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        while (text.nextNode()) for (const { index, 0: word } of text.currentNode.data.matchAll(/\\S+/g)) {
            const range = document.createRange();
            range.setStart(text.currentNode, index);
            range.setEnd(text.currentNode, index + word.length);
            if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word);
        }
    }
    return broken;"""
"""The words of the table that are broken over lines."""
CUT = """const plot = document.querySelector("#coordinates .plot").getBoundingClientRect();
    return [...document.querySelectorAll("#coordinates .annotation-text")].filter((text) => {
        const { left, right } = text.getBoundingClientRect();
        return left < plot.left - 1 || right > plot.right + 1;
    }).map((text) => text.textContent);"""
"""The names at the axes that are cut off."""
HEADINGS = """const plot = document.querySelector("#coordinates .plot");
    return [plot, ...plot.querySelectorAll(".xtick text")].map((each) => {
        const { left, right } = each.getBoundingClientRect();
        return [left, right];
    });"""
"""From where to where the plot goes, and each heading of its axes (pixels)."""


def test_narrow_windows_break_no_words_and_cut_no_names(driver, tmp_path):
    systems = ("baseline", "ring_allreduce", "parameter_server")
    for scenario in ("ring_allreduces", "other"):
        for system in systems:
            made_up_run(tmp_path / f"{scenario}-{system}", system=system, scenario=scenario)
    page = tmp_path / "report.html"
    page.write_text(many_page(Collected.of(find_runs([tmp_path]))))
    size = driver.get_window_size()
    try:
        driver.set_window_size(500, 900)
        show(driver, page)
        assert driver.execute_script(BROKEN) == []
        assert driver.execute_script(CUT) == []
        (left, right), *headings = driver.execute_script(HEADINGS)
        assert len(headings) >= 4
        edges = [left, *(edge for heading in headings for edge in heading), right]
        assert edges == sorted(edges), "headings of axes are cut off or overlap"
        width = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], "the page itself is wider than the window"
    finally:
        driver.set_window_size(size["width"], size["height"])
    assert complaints(driver) == []


NAMED = """const { text, x } = document.querySelector('#front .plot').data.find((trace) => trace.mode === "text");
    return text.map((name, at) => [name.trim(), x[at]]);"""


def test_points_of_the_front_are_named(sweep):
    named, front = sweep.execute_script(NAMED), sweep.execute_script(FRONT)
    assert {time for _, time in named} >= {time for time, _ in front}
    assert "bandwidth 20 Mbps, dlion" in [name for name, _ in named]
    assert complaints(sweep) == []
