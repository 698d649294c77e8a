"""The page in a real browser, used as a person would.

Run by ``make test-web``, which sets ``TORCHLENS_WEB``: it needs Chromium, and Node for axe-core.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from browser import Browser

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = Path(__file__).parent / "pictures"
VISIBLE = "document.querySelectorAll('.item').length"
WIDTH, HEIGHT = 1280, 800


@pytest.fixture(scope="module")
def browser():
    opened = Browser(width=WIDTH, height=HEIGHT)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def visit(browser, folder, request):
    """Open the page of a trace; at the end nothing may have gone wrong, and nothing been asked for."""
    opened = []

    def go(name, *, hash="", dark=False, width=WIDTH, height=HEIGHT, **keywords):
        path = folder / f"{name}-{len(keywords)}.html"
        if not path.exists():
            request.getfixturevalue(name).draw(path, **keywords)
        page = browser.open(f"{path.as_uri()}#{hash}", dark=dark, width=width, height=height)
        opened.append(page)
        return page

    yield go
    for page in opened:
        assert page.problems() == []
        assert {address.split(":")[0] for address in page.requests()} <= {"file", "data"}
        page.close()


def names(page):
    return page.eval("[...document.querySelectorAll('.item')].map(e => e.getAttribute('aria-label'))")


def hash_of(page):
    page.wait("location.hash.length > 1")
    return page.eval("new Promise(done => setTimeout(() => done(location.hash), 250))")


# -- what a person does --------------------------------------------------------------------------


def test_it_opens_folded_with_title_caption_and_graph_on_the_screen(visit):
    page = visit("gpt")
    assert page.eval("document.querySelector('h1').textContent") == "GPT"
    assert page.eval("document.querySelector('.caption h2').textContent") == "What is this model?"
    assert any("+3 more Block" in name for name in names(page))
    rects = page.eval(
        "[...document.querySelectorAll('.item')].map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.top, r.right, r.bottom])"
    )
    assert rects
    assert all(
        left >= 0 and right <= WIDTH and top >= 0 and bottom <= HEIGHT for left, top, right, bottom in rects
    )


@pytest.mark.parametrize("name", ["gpt", "resnet", "rnn", "hostile"])
def test_text_can_be_read_at_first_sight(visit, name):
    page = visit(name)
    sizes = page.eval(
        "[...document.querySelectorAll('.item text[font-weight=\"600\"]')]"
        ".map(e => e.getBoundingClientRect().height)"
    )
    assert sizes
    assert min(sizes) >= 9


def test_a_click_opens_a_box_and_another_closes_it(visit):
    page = visit("gpt")
    before = page.eval(VISIBLE)
    page.click("[aria-label^='h.0 ·']")
    assert page.eval(VISIBLE) > before
    assert any(name.startswith("layer_norm · h.0.ln_1") for name in names(page))
    page.click(".title[aria-label^='h.0 ·']")
    assert page.eval(VISIBLE) == before


def test_every_box_opens(visit):
    page = visit("resnet")
    page.click("button[title='Open every box']")
    assert page.eval("document.querySelectorAll('.item.group').length") == 0
    assert "All" in page.eval("document.querySelector('.state').textContent")
    page.click("button[title='As at first']")
    assert page.eval("document.querySelectorAll('.item.group').length") > 0


def test_search_finds_inside_of_closed_boxes_and_jumps(visit):
    page = visit("gpt")
    page.press("/")
    page.type("^gelu.*h\\.2")
    page.wait("document.querySelector('.found').textContent.includes('1 match')")
    assert page.eval("document.querySelectorAll('.hit').length") == 1
    page.press("Enter")
    page.wait("document.querySelector('.selected')")
    assert page.eval("document.querySelector('.selected').getAttribute('aria-label')").startswith(
        "gelu · h.2.mlp"
    )
    page.press("Escape")
    assert page.eval("document.querySelector('input').value") == ""


def test_a_wrong_expression_is_plain_text(visit):
    page = visit("gpt")
    page.press("/")
    page.type("(((")
    page.wait("document.querySelector('.found').textContent.includes('plain text')")


def test_views_change_captions_legend_and_colours(visit):
    page = visit("gpt")
    page.click("button[data-view='memory']")
    assert page.eval("document.querySelector('.caption h2').textContent") == "What takes the memory?"
    assert page.eval("document.querySelectorAll('.ramp .step').length") == 9
    assert page.eval("document.querySelectorAll('.top li').length") > 5
    assert "encoded" in page.eval("document.querySelector('.caption').textContent")


def test_the_sorted_list_jumps_to_the_node(visit):
    page = visit("gpt", hash="view=compute")
    title = page.eval("document.querySelector('.top .name').textContent")
    page.click(".top .row")
    assert page.eval("document.querySelector('.selected').getAttribute('aria-label')").startswith(title)
    assert page.eval("document.querySelector('.details h2').textContent") == title


def test_pointing_at_a_node_lights_its_path_and_shows_its_facts(visit):
    page = visit("gpt")
    page.hover("[aria-label^='embedding · wpe']")
    assert page.eval("document.querySelector('svg.graph').classList.contains('tracing')")
    dark = page.eval("document.querySelectorAll('.item:not(.lit)').length")
    assert 0 < dark < page.eval(VISIBLE)
    facts = page.eval("document.querySelector('.details').textContent")
    for word in ("label", "shape", "float32", "memory", "time", "params", "code", "models.py:"):
        assert word in facts
    page.hover("h1")
    assert not page.eval("document.querySelector('svg.graph').classList.contains('tracing')")


def test_pointing_at_a_line_lights_its_path(visit):
    page = visit("gpt")
    page.eval(
        "document.querySelector('.edge .reach').dispatchEvent("
        "new PointerEvent('pointerover', {bubbles: true, pointerType: 'mouse'}))"
    )
    assert page.eval("document.querySelectorAll('.edge.lit').length") > 1


def test_the_label_can_be_copied(visit):
    page = visit("gpt")
    page.eval(
        "window.copied = []; navigator.clipboard.writeText = text => (copied.push(text), Promise.resolve())"
    )
    page.click("[aria-label^='embedding · wte']")
    page.click(".buttons button")
    assert page.eval("copied") == ["embedding_1_1"]
    page.wait("document.querySelector('.status').textContent.startsWith('Copied')")


def test_dark_follows_the_reader_and_the_choice(visit):
    page = visit("gpt", dark=True)
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.eval(background) == "rgb(25, 26, 25)"
    page.eval(
        "(() => { const s = document.querySelector('select'); s.value = 'paper';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert page.eval(background) == "rgb(255, 255, 255)"


def test_a_reload_brings_the_state_back(visit):
    page = visit("gpt")
    page.click("button[data-view='memory']")
    page.click("[aria-label^='+3 more Block']")
    page.eval(
        "(() => { const s = document.querySelector('select'); s.value = 'dark';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    before = names(page)
    address = hash_of(page)
    assert "view=memory" in address
    assert "theme=dark" in address
    page.reload()
    assert names(page) == before
    assert page.eval("document.querySelector('select').value") == "dark"
    assert page.eval("document.querySelector('[data-view=memory]').getAttribute('aria-pressed')") == "true"


def test_the_keyboard_is_enough(visit):
    page = visit("gpt")
    scale = "new DOMMatrix(getComputedStyle(document.querySelector('.world')).transform).a"
    before = page.eval(scale)
    page.press("+")
    assert page.eval(scale) > before
    page.press("-")
    page.press("f")
    page.eval("document.querySelector('.item[tabindex=\"0\"]').focus()")
    first = page.eval("document.activeElement.dataset.item")
    page.press("ArrowDown")
    assert page.eval("document.activeElement.dataset.item") != first
    page.eval("document.querySelector('.item.group').focus()")
    visible = page.eval(VISIBLE)
    page.press("Enter")
    assert page.eval(VISIBLE) > visible
    assert page.eval("document.activeElement.getAttribute('aria-expanded')") == "true"
    page.press("Enter")
    assert page.eval(VISIBLE) == visible


def test_arrows_move_the_picture_and_escape_brings_it_back(visit):
    page = visit("gpt")
    place = "document.querySelector('.world').getAttribute('transform')"
    before = page.eval(place)
    page.press("ArrowLeft")
    assert page.eval(place) != before
    page.press("Escape")
    assert page.eval(place) == before


def test_hostile_names_run_nothing(visit):
    page = visit("hostile")
    page.click("button[title='Open every box']")
    for view in page.eval("[...document.querySelectorAll('[data-view]')].map(e => e.dataset.view)"):
        page.click(f"[data-view='{view}']")
    page.hover(".item")
    assert page.eval("typeof window.hurt") == "undefined"
    assert page.eval("document.querySelectorAll('img, iframe, a').length") == 0
    assert "</script>" in page.eval("document.querySelector('h1').textContent")


def test_a_strange_address_does_no_harm(visit):
    page = visit("gpt", hash="view=nothing&theme=x&open=0-5.99999&at=%3Cb%3E&see=a,b,c&search=%E0%A4%A")
    assert page.eval(VISIBLE) > 5


def test_the_loop_shows_passes(visit):
    page = visit("rnn", hash="view=sequence")
    assert any(name.startswith("+") and "more passes" in name for name in names(page))


def test_a_page_stands_in_a_frame(browser, gpt, tmp_path):
    frame = gpt.draw(file_format="html")._repr_mimebundle_()["text/html"]
    path = tmp_path / "notebook.html"
    ready = "<script>document.documentElement.dataset.ready = 'yes'</script>"
    path.write_text(f"<!DOCTYPE html><body>{frame}{ready}</body>", encoding="utf-8")
    page = browser.open(path.as_uri())
    page.wait("document.querySelector('iframe')")
    data = page.screenshot()
    assert len(data) > 5_000
    assert page.eval("document.querySelector('iframe').contentDocument") is None
    page.close()


# -- everybody -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", ["overview", "memory", "debug"])
def test_the_page_is_accessible(visit, view, dark):
    assert AXE.is_file(), "run `npm ci` in web/"
    page = visit("gpt", hash=f"view={view}", dark=dark)
    page.click(".item:not(.group)")
    page.eval(AXE.read_text(encoding="utf-8") + "; true")
    found = page.eval(
        "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 160))]))"
    )
    assert found == [], json.dumps(found, indent=1)


def test_a_narrow_window_works(visit):
    page = visit("gpt", width=420, height=800)
    assert page.eval("document.documentElement.scrollWidth") <= 420
    assert page.eval(VISIBLE) > 5


# -- pictures ------------------------------------------------------------------------------------

SHARE = 0.02
"""Share of pixels that may differ."""


@pytest.mark.parametrize(
    ("name", "model", "hash", "dark"),
    [
        ("gpt-overview", "gpt", "", False),
        ("gpt-dark", "gpt", "view=dims", True),
        ("resnet-dims", "resnet", "view=dims", False),
    ],
)
def test_the_page_looks_as_it_did(visit, request, name, model, hash, dark):
    from PIL import Image, ImageChops

    page = visit(model, hash=hash, dark=dark)
    kept = PICTURES / f"{name}.png"
    if os.environ.get("TORCHLENS_ACCEPT"):
        PICTURES.mkdir(exist_ok=True)
        page.screenshot(kept)
    fresh = kept.with_name(f".{name}.png")
    page.screenshot(fresh)
    with Image.open(kept) as old, Image.open(fresh) as new:
        difference = ImageChops.difference(old.convert("L"), new.convert("L"))
        differing = sum(difference.histogram()[48:])
    fresh.unlink()
    assert differing / (WIDTH * HEIGHT) <= SHARE
