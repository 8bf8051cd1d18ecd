import pytest
from matplotlib.figure import Figure


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are drawn in a test, which write no files."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    return figures
