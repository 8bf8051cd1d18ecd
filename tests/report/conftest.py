import pytest

from tests.browser import browser


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver
