from __future__ import annotations

import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pygraphviz
import pypdfium2
import pytest
from fontTools.ttLib import TTFont
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

import samples

from torchlens.drawing import text
from torchlens.drawing.layout import lay_out
from torchlens.drawing.output import FORMATS, render
from torchlens.drawing.scene import Row, Scene, SceneBox, SceneEdge, SceneNode
from torchlens.drawing.themes import THEMES

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "a<b>&\"quoted\" 'single'",
    "line\nbreak\ttab\x00null\x07bell\x1b[31m",
    "back\\slash \\N \\L {record|field} %s",
    "日本語 emoji 🎉 עברית ∀x∈ℝ",
    "lone \ud800 surrogate \uffff",
    "]]> <!-- --> <script>alert(1)</script>",
    "bidi \u202e override",
    "",
    "x" * 3000,
]


def hostile() -> Scene:
    scene = Scene(title=HOSTILE[0], header=tuple(HOSTILE), caption=(HOSTILE[5],))
    before = ""
    for number, name in enumerate(HOSTILE):
        box = f"box {number} {name}"
        scene.boxes.append(SceneBox(box, (Row(name, "title"),), tooltip=name))
        node = f"{number}:{name}"
        scene.nodes.append(SceneNode(node, (Row(name, "title"), Row(name, "detail")), box, tooltip=name))
        if before:
            scene.edges.append(SceneEdge(before, node, label=name, tooltip=name))
        before = node
    return scene


def pdf_text(data: bytes) -> str:
    document = pypdfium2.PdfDocument(data)
    try:
        return str(document[0].get_textpage().get_text_bounded())
    finally:
        document.close()


def test_the_formats() -> None:
    assert set(FORMATS) >= {"svg", "pdf", "png", "dot", "json", "txt"}
    with pytest.raises(KeyError):
        render(lay_out(samples.branch()), "bmp")


@pytest.mark.parametrize("file_format", sorted({"svg", "pdf", "png", "dot", "json", "txt"}))
def test_same_bytes_on_every_call(file_format: str) -> None:
    first = render(lay_out(samples.gpt(blocks=1)), file_format, dpi=50)
    assert len(first) > 500
    assert render(lay_out(samples.gpt(blocks=1)), file_format, dpi=50) == first


@pytest.mark.parametrize("file_format", sorted({"svg", "pdf", "png", "dot", "json", "txt"}))
def test_hostile_names_survive(file_format: str) -> None:
    data = render(lay_out(hostile()), file_format, dpi=40)
    assert len(data) > 500
    if file_format == "svg":
        root = ET.fromstring(data)
        words = "".join(root.itertext())
        assert HOSTILE[0] in words
        assert "line break tabnullbell[31m" in words
        assert "日本語 emoji 🎉" in words
        assert not list(root.iter(f"{SVG}script"))
    elif file_format == "pdf":
        words = pdf_text(data)
        assert "quoted" in words
        assert "break" in words
    elif file_format == "dot":
        graph = pygraphviz.AGraph(string=data.decode())
        assert graph.number_of_nodes() == len(HOSTILE)
        assert graph.number_of_edges() == len(HOSTILE) - 1
    elif file_format == "json":
        assert [n["rows"][0]["text"] for n in json.loads(data)["nodes"]] == HOSTILE
    elif file_format == "txt":
        words = data.decode()
        assert "日本語" in words
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", words)
    else:
        assert data.startswith(b"\x89PNG")


def test_svg_holds_every_part_once() -> None:
    placed = lay_out(samples.gpt(blocks=2))
    root = ET.fromstring(render(placed, "svg"))
    kinds = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert kinds.count("node") == len(placed.scene.nodes)
    assert kinds.count("edge") == len(placed.scene.edges)
    assert kinds.count("box") == len(placed.scene.boxes)
    names = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(names) == len(set(names))
    assert "h.0.attn" in names
    assert all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in names if name)
    assert "Inter" in (root.find(f"{SVG}style").text or "")  # type: ignore[union-attr]


def test_svg_groups_nest_as_boxes_do() -> None:
    root = ET.fromstring(render(lay_out(samples.gpt(blocks=1)), "svg"))
    block = next(group for group in root.iter(f"{SVG}g") if group.get("id") == "h.0")
    inside = {group.get("id") for group in block.iter(f"{SVG}g")}
    assert {"h.0.attn", "h.0.mlp", "h.0.ln_1", "h.0.fc"} <= inside
    assert "wte" not in inside


def test_svg_ids_stay_distinct_when_labels_collide() -> None:
    nodes = [SceneNode(name, (Row("op", "title"),)) for name in ("a b", "a-b", "a?b", "a-b_2", "7", "")]
    root = ET.fromstring(render(lay_out(Scene("ids", nodes=nodes)), "svg"))
    names = [group.get("id") for group in root.iter(f"{SVG}g") if group.get("class") == "node"]
    assert len(set(names)) == len(nodes)


def test_tooltips_keep_their_lines() -> None:
    node = SceneNode("a", (Row("a", "title"),), tooltip="model.py:12\nfloat32 & more")
    root = ET.fromstring(render(lay_out(Scene("tips", nodes=[node])), "svg"))
    assert "model.py:12\nfloat32 & more" in [title.text for title in root.iter(f"{SVG}title")]


def test_pdf_has_real_text_and_no_pictures() -> None:
    data = render(lay_out(samples.branch()), "pdf")
    words = pdf_text(data)
    for name in ("running_mean", "linear · frozen", "IF: TRUE", "One of two arms ran"):
        assert name in words
    assert b"/Subtype /Image" not in data
    assert b"FontFile2" in data


def test_pdf_writes_greek_cyrillic_and_arrows() -> None:
    rows = (Row("αβγ Привет → × ∑ ≤", "title"), Row("日本", "detail"))
    words = pdf_text(render(lay_out(Scene("u", nodes=[SceneNode("a", rows)])), "pdf"))
    assert "αβγ Привет → × ∑ ≤" in words
    assert words.count("\ufffd") == 2 or "日本" not in words


def test_a_page_larger_than_pdf_allows_is_scaled() -> None:
    placed = lay_out(samples.gpt(blocks=12, colored=False))
    assert placed.height > 14400
    document = pypdfium2.PdfDocument(render(placed, "pdf"))
    width, height = document[0].get_size()
    document.close()
    assert height == pytest.approx(14400, abs=1)
    assert width == pytest.approx(placed.width * 14400 / placed.height, rel=0.01)


def test_png_has_the_size_that_dpi_asks_for() -> None:
    placed = lay_out(samples.branch())
    image = Image.open(io.BytesIO(render(placed, "png", dpi=144)))
    assert image.size == pytest.approx((placed.width * 2, placed.height * 2), abs=2)
    node = placed.nodes[0]
    pixel = image.convert("RGB").getpixel((int(node.rect.x * 2 + 12), int(node.rect.y * 2 + 12)))
    assert pixel == pytest.approx((0x98, 0xFB, 0x98), abs=6)


def test_png_of_a_long_picture_stays_within_its_limit() -> None:
    from torchlens.drawing.output import png

    placed = lay_out(samples.gpt(blocks=12))
    image = Image.open(io.BytesIO(render(placed, "png", dpi=600)))
    assert image.size[0] * image.size[1] <= png.MOST_PIXELS * 1.01
    assert max(image.size) <= png.LONGEST_SIDE + 1


def test_dot_keeps_nesting_and_edges() -> None:
    scene = samples.gpt(blocks=2)
    graph = pygraphviz.AGraph(string=render(lay_out(scene), "dot").decode())
    assert graph.number_of_nodes() == len(scene.nodes)
    assert graph.number_of_edges() == len({(e.source, e.target) for e in scene.edges})
    outer = graph.subgraphs()
    assert len(outer) == 1
    assert len(outer[0].subgraphs()) == 2
    assert "h.0.q" in {str(node) for node in outer[0].subgraphs()[0].nodes()}


def test_json_is_versioned_and_complete() -> None:
    placed = lay_out(samples.rolled_loop())
    data = json.loads(render(placed, "json"))
    assert (data["format"], data["version"]) == ("torchlens.drawing", 1)
    assert len(data["nodes"]) == len(placed.scene.nodes)
    assert {edge["back"] for edge in data["edges"]} == {True, False}
    assert all(len(edge["curve"]) % 3 == 1 for edge in data["edges"])


def test_txt_indents_boxes_and_names_parents() -> None:
    lines = render(lay_out(samples.gpt(blocks=1)), "txt").decode().splitlines()
    assert lines[0] == "GPT-2"
    at = lines.index("    ▾ h.0.attn · GPT2Attention") if "    ▾ h.0.attn · GPT2Attention" in lines else -1
    assert at > 0
    assert any(line.startswith("      split(768, dim=2)") for line in lines)
    attention = next(line for line in lines if "scaled_dot_product_attention" in line)
    assert attention.count("transpose(1, 2)") == 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("direction", ["topdown", "leftright"])
def test_every_theme_and_direction_draws(theme: str, direction: str) -> None:
    placed = lay_out(samples.branch(theme, direction=direction))
    svg = render(placed, "svg").decode()
    assert THEMES[theme].background in svg
    assert "<pattern" in svg
    assert len(render(placed, "pdf")) > 2000


@pytest.mark.parametrize("font", [text.REGULAR, text.BOLD, text.FALLBACK])
def test_width_tables_equal_the_fonts(font: str) -> None:
    file = TTFont(text.FONTS / f"{font}.ttf")
    scale = 1000 / file["head"].unitsPerEm
    table = json.loads((text.FONTS / "widths.json").read_text())[font]
    assert len(table) > 500
    assert table == {str(c): round(file["hmtx"][g][0] * scale) for c, g in file.getBestCmap().items()}


def test_text_is_cleaned_measured_and_shortened() -> None:
    assert text.clean("a\nb\x00c\u202ed") == "a bcd"
    assert text.text_width("WWW", 10) > text.text_width("iii", 10) > 0
    assert text.text_width("abc", 10, bold=True) > text.text_width("abc", 10)
    short = text.shorten("transformer.h.0.attention.self.query", 10, 80)
    assert text.text_width(short, 10) <= 80
    assert short.startswith("tran")
    assert short.endswith("uery")
    assert [font for font, _ in text.runs("a∀日")][-1] is not None


def test_the_fonts_stay_small() -> None:
    assert sum(file.stat().st_size for file in text.FONTS.iterdir() if file.is_file()) < 1_500_000
