"""What mkdocs makes the site of: pages where they stand in the repository, and the files that they point to.

So a link between two pages leads to the same place on the site as in the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"[\w/.-]+\.md")
TUTORIAL = "examples/tutorial.ipynb"
REST = {"How-to guides": "docs/*.md", "Results": "results/**/*.md"}
LINK = re.compile(r"\]\(([^)#\s]+)")
ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
CODE = re.compile(r"`[^`]*`")


def on_config(config: MkDocsConfig) -> None:
    """Put pages that have no place of their own at the end of the guides, and of the results."""
    named = NAMED.findall(str(config.nav))
    for part in config.nav or []:
        for name, pattern in REST.items():
            others = [page for page in sorted(map(_place, ROOT.glob(pattern))) if page not in named]
            part.get(name, []).extend(page for page in others if not page.startswith("results/runs/"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the pages, and what they show and point to, in the place of all that lies in docs/."""
    pages = [ROOT / page for page in NAMED.findall(str(config.nav))]
    there = {page for page in pages if page.is_file()}
    places = sorted(map(_place, there.union(*map(_pointed_to, there))))
    of_theme = [file for file in files if file.src_dir != config.docs_dir]
    found = (File(place, str(ROOT), config.site_dir, config.use_directory_urls) for place in places)
    return Files([*of_theme, *found, *_tutorial(config)])


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leave bars in the code of tables as they are, which GitHub wants escaped and the site's Markdown does not; and
    point to the notebook's page."""
    markdown = markdown.replace("tutorial.ipynb)", "tutorial.md)")
    return ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown)


def _tutorial(config: MkDocsConfig) -> Iterator[File]:
    """The notebook as a page, with its figures beside it."""
    notebook = nbformat.read(ROOT / TUTORIAL, as_version=4)
    notebook.metadata.language_info = {"name": "python"}
    page = PurePosixPath(TUTORIAL).with_suffix(".md")
    text, resources = MarkdownExporter().from_notebook_node(notebook)
    yield File.generated(config, str(page), content=text)
    for name, image in resources["outputs"].items():
        yield File.generated(config, str(page.with_name(name)), content=image)


def _pointed_to(page: Path) -> Iterator[Path]:
    for target in LINK.findall(page.read_text()):
        if (file := (page.parent / target).resolve()).is_file():
            yield file


def _place(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()
