"""The gallery shows every kind of figure, by small pictures; its commands are tested as all pages' are."""

import importlib.util

import typer

from dlion_sim.cli.main import app
from dlion_sim.sweep import check, load_sweep
from tests.pages import ROOT

DOCS = ROOT / "docs"
KINDS = set(typer.main.get_command(app).commands["plot"].commands)


def test_the_page_is_current_and_has_a_small_picture_of_every_kind():
    spec = importlib.util.spec_from_file_location("make_gallery", DOCS / "make_gallery.py")
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert (DOCS / "gallery.md").read_text() == maker.page(), "run: python docs/make_gallery.py"
    sizes = {picture.stem: picture.stat().st_size for picture in (DOCS / "gallery").glob("*.png")}
    assert set(sizes) == KINDS
    assert max(sizes.values()) < 60_000


def test_its_sweep_loads():
    points = load_sweep(DOCS / "gallery" / "sweep.yaml")
    check(points)
    assert len(points) == 18
