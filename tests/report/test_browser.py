"""The page of a run, as a browser shows it."""

import pytest

from dlion_sim.report import run_page
from tests.browser import browser, complaints, show, wait
from tests.made_up import made_up_run
from tests.report.large import large_run
from tests.report.test_run_page import HOSTILE, changed
from tests.results.test_cost import TARIFF

pytestmark = pytest.mark.browser

OVER_TIME = ("metric", "timeline", "links", "lines")
RANGES = """return Object.fromEntries([...document.querySelectorAll('.js-plotly-plot')].map((plot, number) =>
  [`${plot.closest('section').id} ${number}`, plot._fullLayout.xaxis.range.map(Number)]))"""


@pytest.fixture(scope="module")
def chromium():
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Of two workers for 20 s, evaluated every 10 s, with prices, and a worker that was away."""
    run = made_up_run(tmp_path_factory.mktemp("made") / "run", (0.1, 0.5, 0.8), absent=True)
    run = changed(run, clouds=["east", "west"], tariff=TARIFF, partition=[[1, 2], [3, 4]])
    file = run.folder / "report.html"
    file.write_text(run_page(run))
    return file


@pytest.fixture
def shown(chromium, page):
    show(chromium, page)
    yield chromium
    assert complaints(chromium) == []


def ranges(driver):
    """The horizontal range of each plot that is over time (s)."""
    found = driver.execute_script(RANGES)
    return {name: each for name, each in found.items() if name.split()[0] in OVER_TIME}


def settle(driver):
    """Let all be drawn that was asked for."""
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0])))")


def plot(driver, section, what):
    """Something of the first plot of a section: `what` is said in JavaScript of `gd`."""
    return driver.execute_script(f"const gd = document.querySelector('#{section} .js-plotly-plot'); return {what}")


def test_all_sections_are_drawn(shown):
    sections = shown.execute_script(
        "return [...document.querySelectorAll('section:not([hidden])')].map((each) => each.id)"
    )
    assert sections == ["summary", "time", "metric", "timeline", "links", "map", "lines", "partition", "again"]
    assert plot(shown, "metric", "gd.data.at(-1).y") == pytest.approx([10, 50, 80])
    assert plot(shown, "partition", "gd.data[0].z") == [[1, 2], [3, 4]]
    assert plot(shown, "links", "gd.data[0].z.map((row) => [...row])") == [[800, 800]] * 2  # kbps
    text = shown.find_element("id", "summary").text
    assert "80.0%" in text
    assert "4 MB" in text


def test_spans_are_drawn_at_their_times(shown):
    shown.execute_script("report.time.show([10, 12])")
    drawn = plot(shown, "timeline", "[...gd.data[0].z[1]]")
    at = [drawn[round(part * len(drawn))] for part in (0.1, 0.25, 0.4, 0.6, 0.9)]
    assert at == [1, 1, 0, 1, 0]
    assert 4 in plot(shown, "timeline", "[...gd.data[0].z[0]]") or "down" in shown.find_element("id", "timeline").text


def test_pointing_at_a_bar_describes_it(shown):
    from selenium.webdriver import ActionChains

    bars = shown.find_element("css selector", "#timeline .nsewdrag")
    shown.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", bars)
    ActionChains(shown).move_to_element_with_offset(bars, 3, bars.size["height"] // 4).perform()
    wait(shown, "return document.querySelector('#timeline .readout').textContent.startsWith('east/1, 10')")
    assert shown.find_element("css selector", "#timeline .readout").text == "east/1, 10 s to 10.6 s: computing"


@pytest.mark.parametrize("how", ["keys", "curve", "plot"])
def test_all_views_share_the_time_range(shown, how):
    from selenium.webdriver import ActionChains, Keys

    assert {tuple(each) for each in ranges(shown).values()} == {(0, 20)}
    map_before = plot(shown, "map", "JSON.stringify(gd.data.map((each) => each.meta))")
    if how == "keys":
        begin = shown.find_element("css selector", "#time input")
        begin.send_keys(Keys.HOME, *[Keys.PAGE_UP] * 5)
    elif how == "curve":
        curve = shown.find_element("css selector", "#time svg")
        width = curve.size["width"]
        ActionChains(shown).move_to_element_with_offset(curve, -width // 4, 0).click_and_hold().move_by_offset(
            width // 2, 0
        ).release().perform()
    else:
        drag = shown.find_element("css selector", "#lines .nsewdrag")
        shown.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", drag)
        width = drag.size["width"]
        ActionChains(shown).move_to_element_with_offset(drag, -width // 4, 0).click_and_hold().move_by_offset(
            width // 2, 0
        ).release().perform()
    wait(shown, "return report.time.range()[0] > 0")
    settle(shown)
    begin, end = shown.execute_script("return report.time.range()")
    assert 0 < begin < end <= 20
    found = ranges(shown)
    assert len(found) >= 5
    assert all(each == pytest.approx([begin, end], abs=1e-3) for each in found.values()), found
    assert plot(shown, "timeline", "[gd.data[0].x0, gd.data[0].dx]")[0] == pytest.approx(begin, abs=0.02)
    assert map_before  # of equal rates in both intervals
    shown.find_element("id", "whole-run").click()
    assert {tuple(each) for each in ranges(shown).values()} == {(0, 20)}


@pytest.mark.parametrize("section", OVER_TIME)
def test_a_double_click_shows_the_whole_run(shown, section):
    from selenium.webdriver import ActionChains

    shown.execute_script("report.time.show([5, 10])")
    # On a busy machine the two clicks may be far apart.
    shown.execute_script(
        "document.querySelectorAll('.js-plotly-plot').forEach((gd) => (gd._context.doubleClickDelay = 60000))"
    )
    drag = shown.find_element("css selector", f"#{section} .nsewdrag")
    shown.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", drag)
    ActionChains(shown).double_click(drag).perform()
    wait(shown, "return report.time.range()[0] === 0 && report.time.range()[1] === 20")


def test_switches_change_what_is_drawn(shown):
    def choose(section, value):
        shown.execute_script(f"document.querySelector('#{section} input[value={value}]').click()")

    title = "gd.layout.xaxis.title.text"
    assert plot(shown, "metric", title) == "Virtual time (s)"
    choose("metric", "bytes")
    assert plot(shown, "metric", title) == "Sent over the WAN by all workers (MB)"
    assert plot(shown, "metric", "[...gd.data.at(-1).x]") == [0, 2, 4]
    shown.execute_script("report.time.show([10, 20])")
    assert plot(shown, "metric", "gd._fullLayout.xaxis.range") == pytest.approx([2, 4])
    choose("metric", "cost")
    assert plot(shown, "metric", title) == "Cost"
    choose("links", "n_percent")
    assert plot(shown, "links", "gd.data[0].z.map((row) => [...row])") == [[5, 10]] * 2


def test_the_theme_changes_every_plot(shown):
    ink = "getComputedStyle(document.body).color"
    before = shown.execute_script(f"return {ink}"), plot(shown, "metric", "gd.data.at(-1).line.color")
    shown.find_element("id", "theme").click()
    after = shown.execute_script(f"return {ink}"), plot(shown, "metric", "gd.data.at(-1).line.color")
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert after[0] == after[1]


def test_a_plot_can_be_saved_as_a_picture(shown):
    script = "Plotly.toImage(document.querySelector('#metric .js-plotly-plot'), {format: 'png'}).then(arguments[0])"
    assert shown.execute_async_script(script).startswith("data:image/png;base64,")


def test_printed_pages_are_light_and_fit_the_paper(shown):
    shown.find_element("id", "theme").click()
    widths = "[...document.querySelectorAll('.js-plotly-plot')].map((gd) => gd._fullLayout.width)"
    before = shown.execute_script(f"return {widths}")
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown.execute_script("dispatchEvent(new Event('beforeprint'))")
    settle(shown)
    assert set(shown.execute_script(f"return {widths}")) == {690}
    assert plot(shown, "metric", "gd.data.at(-1).line.color") == "rgb(26, 31, 38)"
    assert not shown.find_element("id", "theme").is_displayed()
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    shown.execute_script("dispatchEvent(new Event('afterprint'))")
    settle(shown)
    assert shown.execute_script(f"return {widths}") == before


def test_every_plot_has_a_label_and_a_table(shown):
    labels = shown.execute_script(
        "return [...document.querySelectorAll('.plot')].map((each) => each.getAttribute('aria-label'))"
    )
    assert all(labels)
    shown.execute_script("document.querySelectorAll('details.as-table').forEach((each) => (each.open = true))")
    wait(
        shown, "return [...document.querySelectorAll('details.as-table')].every((each) => each.querySelector('table'))"
    )
    cells = shown.execute_script(
        "return [...document.querySelectorAll('#metric tbody tr:last-child > *')].map((each) => each.textContent)"
    )
    assert cells[0] == "20"
    assert cells[-3:] == ["80", "79", "81"]


def test_all_controls_are_reached_by_tabbing(shown):
    from selenium.webdriver import ActionChains, Keys

    shown.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = []
    for _ in range(60):
        ActionChains(shown).send_keys(Keys.TAB).perform()
        where = shown.execute_script(
            "const at = document.activeElement; return [[...document.querySelectorAll('*')].indexOf(at), "
            "at.type || at.tagName, at.matches(':focus-visible')]"
        )
        if where[1] == "BODY" or where in reached:
            break
        reached.append(where)
    assert all(visible for *_, visible in reached)
    assert [place for place, *_ in reached] == sorted(place for place, *_ in reached)
    tags = [tag for _, tag, _ in reached]
    assert {"A", "button", "radio", "range", "SUMMARY"} <= set(tags)
    assert tags.count("SUMMARY") >= 5


def test_newer_data_keep_the_switches(shown):
    shown.execute_script("document.querySelector('#metric input[value=bytes]').click(); report.time.show([5, 15])")
    shown.execute_script(
        "const data = JSON.parse(document.getElementById('data').textContent);"
        "data.end = 40; data.metric.mean[2] = 70; report.update(data)"
    )
    assert plot(shown, "metric", "gd.data.at(-1).y[2]") == 70
    assert plot(shown, "metric", "gd.layout.xaxis.title.text") == "Sent over the WAN by all workers (MB)"
    assert shown.execute_script("return report.time.range()") == [5, 15]
    shown.execute_script("report.time.show(null)")
    assert shown.execute_script("return report.time.range()") == [0, 40]


def test_hostile_names_are_only_text(chromium, tmp_path):
    run = large_run(tmp_path / "run", workers=3, iterations=20)
    markup = "<img src=x onerror=window.ran=1><a href='javascript:window.ran=1'>a</a>"
    workers = [f"{HOSTILE}/0", f"{markup}/1", "%{x}$x$&lt;<b>b</b><br>/2"]
    run = changed(run, scenario=markup + HOSTILE, workers=workers, clouds=[HOSTILE, markup, "&amp;"])
    file = tmp_path / "page.html"
    file.write_text(run_page(run))
    show(chromium, file)
    assert not chromium.execute_script("return window.ran")
    assert chromium.execute_script("return document.querySelectorAll('body script').length") == 3
    assert chromium.execute_script("return document.querySelectorAll('img, main a').length") == 0
    names = chromium.execute_script(
        "return [...document.querySelectorAll('#timeline .ytick text')].map((each) => each.textContent)"
    )
    assert names[2] == workers[2]
    assert names[1].startswith("<img src=x")
    assert chromium.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert complaints(chromium) == []


def test_an_almost_empty_run_has_a_page(chromium, tmp_path):
    run = made_up_run(tmp_path / "run", (), workers=1)
    file = tmp_path / "page.html"
    file.write_text(run_page(run))
    show(chromium, file)
    hidden = chromium.execute_script("return [...document.querySelectorAll('section[hidden]')].map((each) => each.id)")
    assert {"metric", "links", "map", "partition"} <= set(hidden)
    assert complaints(chromium) == []


def test_samples_without_classes_have_no_class(chromium, tmp_path):
    run = changed(made_up_run(tmp_path / "run", (0.1, 0.5)), partition=[[3], [7]])
    file = tmp_path / "report.html"
    file.write_text(run_page(run))
    show(chromium, file)
    assert plot(chromium, "partition", "gd.layout.xaxis.title.text") == ""
    assert "Class" not in plot(chromium, "partition", "gd.closest('section').textContent")
