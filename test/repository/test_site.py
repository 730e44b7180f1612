"""The documentation site builds without a warning, and looks right in a browser."""

import contextlib
import html.parser
import http.server
import importlib
import json
import re
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown import ROOT
from test_notebook import shows_what_it_says

from xegpu_py import external_tools

pytest.importorskip("mkdocs")
nbformat = pytest.importorskip("nbformat")
SCREENSHOTS = ROOT / "docs" / "site" / "screenshots"
PAGES = (
    "",
    "tile-language/",
    "dpas-layout/",
    "dialects/xegpu/",
    "generated/passes/",
    "generated/api/language/",
    "performance/",
)
WIDTHS = {"wide": 1280, "narrow": 400}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    output = "\n".join(line for line in built.stderr.splitlines() if "WARNING" in line or "ERROR" in line)
    assert built.returncode == 0, output or built.stderr
    return folder


def test_every_page_of_docs_is_there(site):
    for path in ROOT.glob("docs/**/*.md"):
        page = path.relative_to(ROOT / "docs").with_suffix("")
        page = page.parent if page.name == "README" else page
        assert (site / page / "index.html").exists(), page


def test_reference_is_made_from_the_code(site):
    api = (site / "generated" / "api" / "xegpu_py" / "index.html").read_text()
    assert "Read a module, and verify it." in api and '<span class="kn">import</span>' in api
    tour = (site / "generated" / "tour" / "index.html").read_text()
    assert "hardware threads" in tour and "tile_mma" in tour and "<svg" in tour and "over the end of" in tour
    gallery = (site / "generated" / "gallery" / "index.html").read_text()
    assert len(re.findall("<h2", gallery)) == 12 and gallery.count("Memory of: ") == 12
    passes = (site / "generated" / "passes" / "index.html").read_text()
    assert "xegpu-legalize" in passes and "becomes" in passes
    assert "--help-pass" in (site / "generated" / "tools" / "index.html").read_text()
    assert "is not a valid hint for a read" in (site / "generated" / "diagnostics" / "index.html").read_text()


def test_the_notebook_shows_what_it_says(site):
    shows_what_it_says(nbformat.read(site / "examples" / "tour.ipynb", as_version=4))


@pytest.mark.parametrize("name", ["xegpu_py", "xegpu_py.language", "xegpu_py.numerics"])
def test_every_public_name_has_an_entry(site, name):
    page = (site / "generated" / "api" / name.removeprefix("xegpu_py.") / "index.html").read_text()
    headings = re.findall(r"<h2 [^>]*>(.*?)(?:<span class=\"doc doc-labels\">.*?)?</h2>", page, re.DOTALL)
    entries = {re.match(r"[\w.]*", re.sub(r"<.*?>|\s", "", h))[0].removeprefix(f"{name}.") for h in headings}
    assert entries == set(importlib.import_module(name).__all__)


@pytest.mark.parametrize(
    ("name", "earlier", "later"),
    [("xegpu_py", "jit", "Bisection"), ("language", "load", "philox"), ("numerics", "dpas", "tanh")],
)
def test_pages_of_the_api_begin_with_a_table_of_names(site, name, earlier, later):
    page = (site / "generated" / "api" / name / "index.html").read_text()
    start = page.index("<table>")
    assert start < page.index("<h2 ")
    linked = re.findall(
        r'<td><a [^>]*href="#([\w.]+)"[^>]*><code>(\w+)</code>', page[start : page.index("</table>", start)]
    )
    names = [name for _, name in linked]
    assert names.index(earlier) < names.index(later)
    assert not [anchor for anchor, _ in linked if f'id="{anchor}"' not in page]


class Links(html.parser.HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.references = set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.references |= {given[name] for name in ("href", "src") if given.get(name)}


def broken_links(site):
    """The links within a site to files or anchors that are not there, with their pages."""
    pages = {path: Links(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for reference in page.references:
            url = urlsplit(reference)
            if url.scheme or url.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (url.fragment and unquote(url.fragment) not in pages[target].anchors | {"__top"}):
                yield f"{path.relative_to(site)}: {reference}"


def test_links_anchors_and_pictures_lead_somewhere(site):
    assert list(broken_links(site)) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text("<a href='#b'><a href='b.html#c'><img src='d.png'><a href='https://e'><p id='f'>")
    (tmp_path / "b.html").write_text("<a href='a.html#f'><a href='./'>")
    assert sorted(broken_links(tmp_path)) == ["a.html: #b", "a.html: b.html#c", "a.html: d.png", "b.html: ./"]


def test_pages_have_neighbours_and_a_version(site):
    page = (site / "faq" / "index.html").read_text()
    assert "md-footer__link--prev" in page and "md-footer__link--next" in page
    assert f"xegpu-py {version('xegpu-py')}" in page


def test_pictures_open_in_full_size(site):
    page = (site / "dpas-layout" / "index.html").read_text()
    assert page.count('<a href="../visa/dpas-') == page.count('src="../visa/dpas-') == 5


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text()
        for attribute in ('src="http', 'src="//', 'rel="stylesheet" href="http'):
            assert attribute not in text, page


@contextlib.contextmanager
def served(folder: Path):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=external_tools.find("chromium"), args=["--no-sandbox"])
        yield found
        found.close()


@pytest.mark.needs("chromium")
def test_pages_in_a_browser(site, browser, tmp_path, request):
    """No page is wider than the window, all pictures load, and no request fails.

    With `--save-screenshots` the pictures in docs/site/screenshots are updated.
    """
    folder = SCREENSHOTS if request.config.getoption("--save-screenshots") else tmp_path
    folder.mkdir(exist_ok=True)
    broken = "[...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)"
    page, failed = browser.new_page(), []
    # Each page would build the index of the search, which another test does.
    index = {**json.loads((site / "search/search_index.json").read_text()), "docs": []}
    page.route("**/search_index.json", lambda route: route.fulfill(json=index))
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)
    page.on("pageerror", lambda e: failed.append(str(e)))
    with served(site) as address:
        for name in PAGES:
            for size, width in WIDTHS.items():
                page.set_viewport_size({"width": width, "height": 900})
                if size == "wide":
                    page.goto(address + name)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, size)
                if name in PAGES[:4]:
                    page.screenshot(path=folder / f"{name.strip('/').replace('/', '-') or 'overview'}-{size}.png")
            assert page.evaluate(broken) == [], name
        page.close()
    assert failed == []


@pytest.mark.needs("chromium")
def test_search_finds_entries(site, browser):
    """The first section that is found is the entry of the op or function, not a use of it."""
    entries = {"load_nd": "xegpu.load_nd", "xegpu.load_nd": "xegpu.load_nd", "autotune": "xegpu_py.autotune"}
    with served(site) as address:
        for query, title in entries.items():
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(address)
            page.keyboard.press("/")
            page.keyboard.type(query)
            found = page.locator(".md-search-result__item a").nth(1)
            found.wait_for(timeout=20_000)
            assert found.inner_text().strip().startswith(title), query
            page.close()
