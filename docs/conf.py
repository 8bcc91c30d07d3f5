"""How the site is built: ``make docs``, with Sphinx, furo and MyST.

Sphinx rather than Material for MkDocs, which is in maintenance: its search index is a plain script,
so that the built pages can be searched from a folder without a server; it reads docstrings; the
pages are Markdown as they were; and each of its warnings can be an error. Nothing that a page needs
is on another host: furo uses the fonts of the machine, and formulas are text.
"""

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from keyhole.base.version import __version__  # noqa: E402

project = "Keyhole"
author = "the Keyhole authors"
copyright = author
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["results/**", "notebooks/**"]
myst_heading_anchors = 4
highlight_language = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_type_aliases = {"FloatArray": "FloatArray", "IntArray": "IntArray"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False

html_theme = "furo"
html_title = f"Keyhole {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # they would be fetched, which no browser does from files
pygments_style = "tango"
pygments_dark_style = "github-dark"


def setup(app):
    """Say what is done to the pages and docstrings before they are read."""
    app.connect("builder-inited", _write_the_papers)
    app.connect("source-read", _lead_home)
    app.connect("source-read", _trim)
    app.connect("autodoc-process-docstring", _keep_bars)
    app.connect("autodoc-process-signature", _signature)


def _write_the_papers(app):
    """Write the pages of the papers, with their figures, from what is committed of them."""
    from bench.site.papers import write_pages  # noqa: PLC0415

    write_pages(Path(app.srcdir) / "papers")


def _lead_home(_app, _name, source):
    """Let links to pages at the root of the project lead to those pages of the site."""
    for page in ("SECURITY", "CHANGELOG", "CONTRIBUTING"):
        source[0] = source[0].replace(f"](../{page}.md", f"]({page.lower()}.md")


def _trim(_app, _name, source):
    """Take the empty line away with which examples end for the sake of the tests."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def _keep_bars(_app, _what, _name, _object, _options, lines):
    """Let the bars of a formula, such as those of a norm, stand for themselves."""
    for number, line in enumerate(lines):
        parts = re.split(r"(``.*?``|`.*?`)", line)  # every second one is a literal or a role
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "".join(parts)


def _signature(_app, what, _name, described, _options, signature, returns):
    """Show what a class is made with: those that keep their settings hide it behind ``*args``."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    own = inspect.signature(described)
    bare = [each.replace(annotation=each.empty) for each in own.parameters.values()]
    return str(own.replace(parameters=bare, return_annotation=own.empty)), returns
