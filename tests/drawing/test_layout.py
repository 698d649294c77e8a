from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import laws
import samples

from torchlens.drawing.layout import Placed, engine, lay_out, order
from torchlens.drawing.scene import Row, Scene, SceneBox, SceneEdge, SceneError, SceneNode
from torchlens.drawing.text import FONTS, text_width

SAMPLES = {
    "resnet": samples.resnet,
    "gpt": samples.gpt,
    "loop": samples.rolled_loop,
    "branch": samples.branch,
    "sequence": samples.sequence,
    "dims": samples.dims,
}
DIRECTIONS = ("topdown", "bottomup", "leftright")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", SAMPLES)
def test_geometry_of_samples(name: str, direction: str) -> None:
    laws.check_all(lay_out(SAMPLES[name](direction=direction)))


@pytest.mark.parametrize("name", SAMPLES)
def test_geometry_with_the_engine_for_large_scopes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "DOT_VERTICES", 0)
    laws.check_all(lay_out(SAMPLES[name]()))


@pytest.mark.parametrize("name", ["resnet", "gpt"])
@pytest.mark.parametrize("direction", ["topdown", "bottomup"])
def test_wrapped_pictures_keep_the_laws_and_become_less_tall(name: str, direction: str) -> None:
    tall = lay_out(SAMPLES[name](direction=direction))
    wrapped = lay_out(SAMPLES[name](direction=direction, wrap=True))
    laws.check_all(wrapped)
    assert tall.height > 3 * tall.width
    assert wrapped.height < 1.6 * wrapped.width
    assert len(wrapped.edges) == len(tall.edges)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Random nested scenes: boxes that hold consecutive nodes, forward edges, and some recurrence."""
    count = draw(st.integers(1, 24))
    scene = Scene(title="random", direction=draw(st.sampled_from(DIRECTIONS)))
    scene.long_edges = draw(st.sampled_from(["auto", "line", "stub"]))
    scopes, open_boxes = [], [""]
    for number in range(count):
        step = draw(st.sampled_from(["stay", "stay", "open", "close"]))
        if step == "open" and len(open_boxes) < 5:
            title = (Row(draw(st.sampled_from(["b", "layer.0.attention", "x" * 40])), "title"),)
            scene.boxes.append(SceneBox(f"b{number}", title, open_boxes[-1]))
            open_boxes.append(f"b{number}")
        elif step == "close" and len(open_boxes) > 1:
            open_boxes.pop()
        scopes.append(open_boxes[-1])
    for number, scope in enumerate(scopes):
        rows = tuple(Row("m" * draw(st.integers(1, 30)), "title") for _ in range(draw(st.integers(1, 3))))
        size = draw(st.sampled_from([None, None, None, (30.0, 24.0), (120.0, 90.0)]))
        shape = draw(st.sampled_from(["rounded", "box", "ellipse", "octagon"]))
        scene.nodes.append(SceneNode(f"n{number}", rows, scope, size=size, shape=shape))
    for head in range(1, count):
        for tail in draw(st.sets(st.integers(max(0, head - 9), head - 1), max_size=3)):
            scene.edges.append(SceneEdge(f"n{tail}", f"n{head}", label=draw(st.sampled_from(["", "(3, 4)"]))))
    for tail in draw(st.sets(st.integers(0, count - 1), max_size=2)):
        scene.edges.append(SceneEdge(f"n{tail}", f"n{draw(st.integers(0, tail))}", back=True))
    return scene


@given(scenes())
@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_geometry_of_random_scenes(scene: Scene) -> None:
    placed = lay_out(scene)
    laws.check_all(placed)
    assert len(placed.edges) + placed.stub_edges == len(scene.edges)


def test_the_laws_can_fail() -> None:
    placed = lay_out(samples.branch())
    first, *rest = placed.nodes
    moved = type(first)(first.node, rest[0].rect, first.texts)
    broken = Placed(
        **{field: getattr(placed, field) for field in Placed.__dataclass_fields__} | {"nodes": (moved, *rest)}
    )
    with pytest.raises(AssertionError):
        laws.check_nodes(broken)
    with pytest.raises(AssertionError):
        laws.check_edges(broken)


def _measured(text: str, size: float, bold: bool) -> float:
    """Measure with the font file itself."""
    total = 0.0
    names = ("Inter-SemiBold" if bold else "Inter-Regular", "DejaVuSans")
    fonts = [_FONTS.setdefault(name, TTFont(FONTS / f"{name}.ttf")) for name in names]
    for letter in text:
        font = next((f for f in fonts if ord(letter) in f.getBestCmap()), None)
        assert font is not None, f"no font has {letter!r}"
        glyph = font.getBestCmap()[ord(letter)]
        total += font["hmtx"][glyph][0] / font["head"].unitsPerEm * size
    return total


_FONTS: dict[str, TTFont] = {}


@pytest.mark.parametrize("name", SAMPLES)
def test_labels_lie_inside_their_nodes(name: str) -> None:
    for node in lay_out(SAMPLES[name]()).nodes:
        if not node.text_inside:
            assert node.node.size is not None
            continue
        for text in node.texts:
            half = _measured(text.text, text.size, text.bold) / 2
            assert text.anchor == "middle"
            assert node.rect.x + 3 <= text.x - half
            assert text.x + half <= node.rect.right - 3
            assert node.rect.y <= text.y - text.size * 0.75
            assert text.y + text.size * 0.2 <= node.rect.bottom


def test_fixed_sizes_are_exact_and_their_text_stands_beside() -> None:
    placed = lay_out(samples.dims())
    outside = [node for node in placed.nodes if not node.text_inside]
    assert outside
    for node in placed.nodes:
        if node.node.size:
            assert (node.rect.width, node.rect.height) == node.node.size
    for node in outside:
        for text in node.texts:
            assert text.x >= node.rect.right


def test_equal_blocks_are_equal_inside() -> None:
    placed = lay_out(samples.gpt(blocks=12))
    corner = {box.box.id: box.rect for box in placed.boxes}
    shapes = set()
    for k in (0, 1, 9, 10, 11):
        box = corner[f"h.{k}"]
        inner = [
            (round(n.rect.x - box.x, 1), round(n.rect.y - box.y, 1), n.rect.width, n.rect.height)
            for n in placed.nodes
            if n.node.id.startswith(f"h.{k}.")
        ]
        shapes.add((box.width, box.height, tuple(inner)))
    assert len(shapes) == 1


def test_equal_scopes_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlens.drawing.layout import compose

    solved = []
    monkeypatch.setattr(compose, "solve", lambda problem: solved.append(problem) or engine.solve(problem))
    lay_out(samples.gpt(blocks=24))
    assert len(solved) == 5  # attention, mlp, block, transformer, whole picture


def test_titles_are_crossed_by_no_line() -> None:
    for make in (samples.resnet, samples.gpt, samples.rolled_loop):
        placed = lay_out(make())
        points = [point for edge in placed.edges for point in laws.sample(edge.curve)]
        for box in placed.boxes:
            title = box.title
            hits = [p for p in points if title.x < p[0] < title.right and title.y < p[1] < title.bottom]
            assert not hits, box.box.id
            assert laws.contains(box.rect, title)


def crowd(steps: int, **options: object) -> Scene:
    scene = Scene(title="loop", **options)  # type: ignore[arg-type]
    scene.nodes.append(SceneNode("x", (Row("x", "title"),)))
    for step in range(steps):
        scene.nodes.append(SceneNode(f"s{step}", (Row(f"select {step}", "title"),)))
        scene.nodes.append(SceneNode(f"a{step}", (Row("add", "title"),)))
        scene.edges += [SceneEdge("x", f"s{step}"), SceneEdge(f"s{step}", f"a{step}")]
        if step:
            scene.edges.append(SceneEdge(f"a{step - 1}", f"a{step}"))
    return scene


def test_far_consumers_of_a_crowded_scope_get_tags() -> None:
    placed = lay_out(crowd(100))
    laws.check_all(placed)
    assert placed.stub_edges > 90
    assert len(placed.edges) + placed.stub_edges == len(placed.scene.edges)
    incoming = [stub for stub in placed.stubs if not stub.outgoing]
    assert len(incoming) == placed.stub_edges
    assert {stub.text.text for stub in incoming} == {"x"}
    assert [stub.text.text for stub in placed.stubs if stub.outgoing] == [str(placed.stub_edges)]


def test_lines_are_kept_where_asked_for_or_where_there_is_room() -> None:
    assert lay_out(crowd(100, long_edges="line")).stub_edges == 0
    assert lay_out(crowd(10)).stub_edges == 0
    laws.check_all(lay_out(crowd(100, long_edges="line")))
    assert lay_out(crowd(40, long_edges="stub")).stub_edges > 0


def test_very_many_long_lines_run_down_the_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_BENDS", 50)
    placed = lay_out(crowd(30, long_edges="line"))
    laws.check_nodes(placed)
    laws.check_edges(placed)
    assert len(placed.edges) == len(placed.scene.edges)


def test_nodes_of_one_column_stand_side_by_side() -> None:
    placed = lay_out(samples.sequence())
    columns: dict[int, set[float]] = {}
    for node in placed.nodes:
        if node.node.column is not None:
            columns.setdefault(node.node.column, set()).add(round(node.rect.center[1]))
    assert len(columns) > 2
    assert all(len(heights) == 1 for heights in columns.values())
    firsts = [min(heights) for _, heights in sorted(columns.items())]
    assert firsts == sorted(firsts)


def test_columns_that_contradict_the_flow_are_dropped() -> None:
    nodes = [SceneNode(str(k), (Row("op", "title"),), column=k % 2) for k in range(4)]
    scene = Scene("odd", nodes=nodes, edges=[SceneEdge(str(k), str(k + 1)) for k in range(3)])
    laws.check_nodes(lay_out(scene))
    laws.check_flow(lay_out(scene))


def test_a_circle_without_marks_is_still_drawn() -> None:
    nodes = [SceneNode(name, (Row(name, "title"),)) for name in "abc"]
    edges = [SceneEdge("a", "b"), SceneEdge("b", "c"), SceneEdge("c", "a")]
    placed = lay_out(Scene("circle", nodes=nodes, edges=edges))
    laws.check_nodes(placed)
    laws.check_edges(placed)
    assert len(placed.edges) == 3


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (Scene("s", nodes=[SceneNode("a", ()), SceneNode("a", ())]), "more than one node 'a'"),
        (Scene("s", boxes=[SceneBox("b", ()), SceneBox("b", ())]), "more than one box 'b'"),
        (Scene("s", nodes=[SceneNode("a", (), "gone")]), "the box 'gone', which the scene does not have"),
        (Scene("s", nodes=[SceneNode("a", ())], edges=[SceneEdge("a", "z")]), "'z', which is no node"),
        (Scene("s", boxes=[SceneBox("a", (), "b"), SceneBox("b", (), "a")]), "in a circle"),
    ],
)
def test_contradictions_are_refused(scene: Scene, message: str) -> None:
    with pytest.raises(SceneError, match=message):
        lay_out(scene)


@pytest.mark.parametrize(
    "scene", [Scene(""), Scene("t", nodes=[SceneNode("a", ())]), Scene("t", boxes=[SceneBox("b", ())])]
)
def test_small_scenes(scene: Scene) -> None:
    placed = lay_out(scene)
    laws.check_all(placed)
    assert placed.width > 0
    assert placed.height > 0


def test_header_and_start_of_the_graph_share_the_first_screen() -> None:
    placed = lay_out(samples.gpt(blocks=48))
    first = min(placed.nodes, key=lambda node: node.rect.y)
    assert first.rect.bottom < 650
    assert first.rect.right < 1000
    assert placed.header.rect.bottom <= placed.caption.rect.y
    assert placed.legend is not None
    assert placed.caption.rect.bottom <= placed.legend.rect.y
    assert placed.legend.rect.bottom < first.rect.y


def test_font_size_scales_the_text() -> None:
    plain, large = lay_out(samples.branch()), lay_out(samples.branch(font_size=21.0))
    assert large.nodes[0].texts[0].size == 21.0
    assert large.nodes[0].rect.height > 1.5 * plain.nodes[0].rect.height
    laws.check_all(large)


def test_a_new_process_gives_the_same_numbers() -> None:
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]); import samples;"
        "from torchlens.drawing.layout import lay_out; from torchlens.drawing.output import render;"
        "print(hashlib.sha256(render(lay_out(samples.gpt()), 'json')).hexdigest())"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    seeds = [{"PYTHONHASHSEED": seed, "PATH": ""} for seed in ("1", "2")]
    runs = [subprocess.run(command, env=env, capture_output=True, text=True, check=True) for env in seeds]
    assert len({run.stdout for run in runs}) == 1
    assert len(runs[0].stdout.strip()) == 64


def test_an_input_read_everywhere_in_a_huge_loop_does_not_hang() -> None:
    placed = lay_out(crowd(2500))
    assert len(placed.nodes) == 5001
    assert json.dumps(placed.width)
    laws.check_nodes(placed)


@pytest.mark.parametrize("direction", ["topdown", "leftright"])
def test_a_wide_graph_starts_on_the_first_screen(direction: str) -> None:
    scene = Scene("fan", direction=direction)  # type: ignore[arg-type]
    scene.nodes = [SceneNode(name, (Row(name, "title"),)) for name in ("x", "stem")]
    scene.edges = [SceneEdge("x", "stem")]
    for k in range(40):
        scene.nodes.append(SceneNode(f"n{k}", (Row("linear · layer", "title"),)))
        scene.edges.append(SceneEdge("stem", f"n{k}"))
    placed = lay_out(scene)
    laws.check_all(placed)
    first = placed.nodes[0].rect
    assert max(placed.width, placed.height) > 1500
    assert first.right < 1000
    assert first.bottom < 650


def test_lines_of_a_chain_through_boxes_are_straight() -> None:
    placed = lay_out(samples.gpt(blocks=3))
    names = "ln_1 c_attn back reshape c_proj add1 ln_2".split()
    chain = [f"h.1.{name}" for name in names]
    found = [e for e in placed.edges if e.edge.source in chain and e.edge.target in chain]
    found = [e for e in found if chain.index(e.edge.target) == chain.index(e.edge.source) + 1]
    assert len(found) == 4
    assert all(len({x for x, _ in edge.curve}) == 1 for edge in found)


def test_skip_lines_pass_close_by() -> None:
    placed = lay_out(samples.gpt(blocks=1, direction="leftright"))
    box = next(b.rect for b in placed.boxes if b.box.id == "h.0.attn")
    outer = next(b.rect for b in placed.boxes if b.box.id == "h.0")
    skip = next(e for e in placed.edges if e.edge.target == "h.0.add1" and e.edge.source == "drop")
    far = max(abs(y - box.center[1]) for _, y in skip.curve)
    assert far < box.height / 2 + 20
    assert outer.height < box.height + 80


def test_texts_on_lines_have_a_plate_of_what_lies_behind() -> None:
    nodes = [SceneNode(name, (Row(name, "title"),), column=0, scope="b") for name in ("one", "two")]
    scene = Scene("flat", nodes=nodes, edges=[SceneEdge("one", "two", label="a long text of an edge")])
    scene.boxes = [SceneBox("b", (Row("b", "title"),), fill="#ABCDEF")]
    placed = lay_out(scene)
    laws.check_texts(placed)
    (text,) = placed.edges[0].texts
    assert text.plate in (None, "#ABCDEF")


def test_layout_leaves_the_collector_as_it_was() -> None:
    assert gc.isenabled()
    lay_out(samples.branch())
    assert gc.isenabled()
    with pytest.raises(SceneError):
        lay_out(Scene("s", nodes=[SceneNode("a", (), "gone")]))
    assert gc.isenabled()
    gc.disable()
    try:
        lay_out(samples.branch())
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_labels_beside_the_outermost_line_lie_on_the_page():
    long = "passes 2-3 of many, a long text beside the line that runs back"
    nodes = [SceneNode(name, (Row(name, "title"),)) for name in ("a", "b")]
    edges = [SceneEdge("a", "b"), SceneEdge("b", "b", label=long, back=True)]
    placed = lay_out(Scene("loop", nodes=nodes, edges=edges))
    texts = [text for edge in placed.edges for text in edge.texts]
    assert any(text.text == long for text in texts)
    for text in texts:
        right = text.x + text_width(text.text, text.size, bold=text.bold) * (text.anchor == "start")
        assert right <= placed.width
        assert text.y <= placed.height
