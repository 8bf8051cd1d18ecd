"""The tutorial's notebook runs with short durations."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

from tests.pages import ROOT

FILE = ROOT / "examples" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """Executed, with shorter runs."""
    notebook = nbformat.read(FILE, as_version=4)
    for cell in notebook.cells:
        cell.source = re.sub(r"duration=\d+ s", "duration=1 s", cell.source)
        cell.source = re.sub(r"in \(0, 1\)", "in (0,)", cell.source)
        # In the kernel's process, as imports take seconds.
        cell.source = re.sub(
            r"^!dlion (.*?)( 2> /dev/null)?$", r"%run -m dlion_sim \1", cell.source, flags=re.MULTILINE
        )
    folder = tmp_path_factory.mktemp("tutorial")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook, folder


def printed(cell):
    outputs = cell.get("outputs", [])
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_commands_succeed(notebook):
    executed, folder = notebook
    (last,) = [cell for cell in executed.cells if "dlion_sim report" in cell.source and cell.cell_type == "code"]
    assert "report.html" in printed(last)
    assert (folder / "report.html").stat().st_size > 100_000
    faults = [cell.source for cell in executed.cells if re.search(r"Error|Usage:|dlion: ", printed(cell))]
    assert not faults


def test_the_last_comparison_has_the_own_system(notebook):
    executed, _ = notebook
    tables = [printed(cell) for cell in executed.cells if cell.source.startswith("%run -m dlion_sim compare runs")]
    assert [("patient" in table, "ako" in table) for table in tables] == [(False, True), (True, True)]


def test_the_notebook_has_complete_output():
    cells = [cell for cell in nbformat.read(FILE, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert not [output for cell in cells for output in cell.outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
