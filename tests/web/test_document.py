"""The file around the data: nothing in it can reach out, and no name can break in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

import torchlens as tl
from torchlens.drawing.page import document
from torchlens.trace.quantities import Bytes, Count, Duration, Flops

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"


class Elements(HTMLParser):
    """Tags with attributes, and the texts of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        self.tags.append((f"/{tag}", {}))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] in ("script", "style"):
            self.texts.append((self.tags[-1], data))


def page(trace, tmp_path, **keywords):
    path = tmp_path / "page.html"
    trace.draw(path, **keywords)
    return path.read_text(encoding="utf-8")


def test_the_page_is_one_small_file(gpt, tmp_path, capsys):
    text = page(gpt, tmp_path)
    assert "Drawing written to" in capsys.readouterr().out
    assert len(text) < 1_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_policy_allows_only_what_is_in_the_file(gpt, tmp_path):
    found = Elements(page(gpt, tmp_path))
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    for (tag, attributes), text in found.texts:
        if attributes.get("id") == "data":
            continue
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{'script' if tag == 'script' else 'style'}-src 'sha256-{digest}'" in policy


def test_nothing_is_loaded(gpt, tmp_path):
    found = Elements(page(gpt, tmp_path))
    assert not any(name in attributes for _, attributes in found.tags for name in ("src", "href", "srcset"))
    assert {tag for tag, _ in found.tags if not tag.startswith("/")} <= {
        "html", "head", "meta", "title", "style", "body", "div", "noscript", "script",
    }  # fmt: skip
    script = (document.BUNDLE / "page.js").read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\"'`\s)]+", script))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r"\b(fetch|XMLHttpRequest|WebSocket|sendBeacon|EventSource|innerHTML|eval)\b", script
    )


def test_hostile_names_stay_text(hostile, tmp_path):
    text = page(hostile, tmp_path)
    found = Elements(text)
    assert [tag for tag, _ in found.tags].count("script") == 2
    assert not any(tag == "img" for tag, _ in found.tags)
    data = next(text for (_, attributes), text in found.texts if attributes.get("id") == "data")
    assert not set("<>&\u2028") & set(data)
    assert any("</script>" in string for string in json.loads(data)["strings"])


def test_much_data_travels_packed(gpt, tmp_path, monkeypatch):
    plain = next(t for (_, a), t in Elements(page(gpt, tmp_path)).texts if a.get("id") == "data")
    monkeypatch.setattr(document, "PACK_FROM", 100)
    (_, attributes), packed = next(
        f for f in Elements(page(gpt, tmp_path)).texts if f[0][1].get("id") == "data"
    )
    assert attributes["data-packed"] == "deflate"
    assert len(packed) < len(plain)
    assert zlib.decompress(base64.b64decode(packed)).decode() == plain


def test_twenty_thousand_ops_fit_into_five_megabytes(tmp_path):
    def long(x):
        for k in range(1000):
            x = torch.sin(x * 1.5).abs() if k % 2 else torch.cos(x + k).exp()
        return x

    text = page(tl.trace(long, torch.randn(2), save=False), tmp_path)
    data = next(t for (_, a), t in Elements(text).texts if a.get("id") == "data")
    assert 20_000 / 3_000 * len(data) + 500_000 < 5_000_000


def test_same_trace_same_bytes(gpt, tmp_path):
    assert page(gpt, tmp_path) == page(gpt, tmp_path)


def test_a_refusal_writes_nothing(gpt, tmp_path):
    with pytest.raises(tl.InvalidArgumentError):
        gpt.draw(tmp_path / "page.html", view="interventions")
    assert not list(tmp_path.iterdir())


def test_a_drawing_can_be_saved_as_a_page_later(gpt, tmp_path):
    path = gpt.draw(view="memory").save(tmp_path / "later.html")
    data = next(t for (_, a), t in Elements(path.read_text("utf-8")).texts if a.get("id") == "data")
    assert json.loads(data)["view"] == "memory"


# -- the bundle ----------------------------------------------------------------------------------


def source_hash() -> str:
    """What ``web/build.mjs`` computes: names and contents of all that the bundle is made from."""
    paths = [path for path in (WEB / "src").rglob("*") if path.is_file()]
    paths += [WEB / name for name in ("build.mjs", "package.json", "package-lock.json")]
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(WEB).as_posix(), path) for path in paths):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def test_the_shipped_bundle_is_built_from_this_source():
    shipped = (document.BUNDLE / "source.sha256").read_text(encoding="ascii").strip()
    assert shipped == source_hash(), "run `npm ci && npm run build` in web/"


def test_the_bundle_names_its_licences():
    assert "Permission is hereby granted" in (document.BUNDLE / "LICENSES.txt").read_text(encoding="utf-8")


def test_the_bundle_cannot_end_its_script():
    assert "</script" not in (document.BUNDLE / "page.js").read_text(encoding="utf-8").lower()


# -- numbers -------------------------------------------------------------------------------------

KINDS = {"bytes": Bytes, "count": Count, "flops": Flops, "duration": Duration}


@pytest.mark.parametrize("name", KINDS)
def test_quantities_print_as_the_page_prints_them(name):
    cases = json.loads((WEB / "test" / "quantities.json").read_text(encoding="utf-8"))[name]
    assert [str(KINDS[name](value)) for value, _ in cases] == [text for _, text in cases]
