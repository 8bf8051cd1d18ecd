"""What a reader does on the page of many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CHOSEN = """return [...document.querySelectorAll("#outcomes-table tr.chosen")].map(
    (row) => row.dataset.id.split(" ").at(-1));"""
"""The systems of the rows that are selected."""


def drag(driver: Any, section: str, across: Sequence[float], up: Sequence[float]) -> None:
    """From one corner to another of a box in a plot, whose sides are on its axes."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    plot = driver.find_element(By.CSS_SELECTOR, f"#{section} .plot")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    (left, right), (bottom, top) = driver.execute_script(
        """const { xaxis, yaxis } = arguments[0]._fullLayout;
        const places = (axis, values) => values.map((value) => Math.round(axis._offset + axis.l2p(value)));
        return [places(xaxis, arguments[1]), places(yaxis, arguments[2])];""",
        *(plot, across, up),
    )
    begin = left - plot.size["width"] // 2, bottom - plot.size["height"] // 2
    width, height = right - left, top - bottom
    actions = ActionChains(driver, duration=50).move_to_element_with_offset(plot, *begin).click_and_hold()
    actions.move_by_offset(width // 2, height // 2).move_by_offset(width - width // 2, height - height // 2)
    actions.release().perform()


def choose(driver: Any, section: str, label: str) -> None:
    """In the only list of a section."""
    driver.execute_script(
        """const select = document.querySelector(`#${arguments[0]} select`);
        select.value = [...select.options].find((each) => each.textContent === arguments[1]).value;
        select.dispatchEvent(new Event("change"));""",
        *(section, label),
    )


def axis_titles(driver: Any, section: str) -> list[str]:
    layout = f"document.querySelector('#{section} .plot').layout"
    return [driver.execute_script(f"return {layout}.{axis}.title.text") for axis in ("xaxis", "yaxis")]
