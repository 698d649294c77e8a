"""The returned drawing, and where it goes."""

from __future__ import annotations

import re
import sys

import pytest
import torch

import torchlens as tl

FORMATS = ["svg", "pdf", "png", "dot", "json", "txt"]


def test_nothing_is_written_without_a_path(mlp, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    drawing = mlp.draw()
    assert drawing.path is None
    assert drawing.svg.lstrip().startswith(("<?xml", "<svg"))
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("file_format", FORMATS)
def test_path_without_suffix_gets_that_of_the_format(mlp, tmp_path, file_format, capsys):
    drawing = mlp.draw(tmp_path / "figure", file_format=file_format)
    assert drawing.path == tmp_path / f"figure.{file_format}"
    assert drawing.path.stat().st_size > 100
    assert str(drawing.path) in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == [f"figure.{file_format}"]


@pytest.mark.parametrize(
    ("name", "file_format", "written"),
    [
        ("a", None, "a.svg"),
        ("a.png", None, "a.png"),
        ("a.PNG", None, "a.PNG"),
        ("a.v2", None, "a.v2.svg"),
        ("a.v2", "png", "a.v2.png"),
        ("a.svg", "svg", "a.svg"),
        ("deep/er/a.pdf", None, "deep/er/a.pdf"),
    ],
)
def test_names(mlp, tmp_path, name, file_format, written):
    drawing = mlp.draw(str(tmp_path / name), file_format=file_format)
    assert drawing.path == tmp_path / written
    assert drawing.path.exists()


def test_save_writes_other_formats_of_the_same_drawing(mlp, tmp_path):
    drawing = mlp.draw()
    assert drawing.save(tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert drawing.save(tmp_path / "b", file_format="txt") == tmp_path / "b.txt"
    with pytest.raises(tl.InvalidArgumentError):
        drawing.save(tmp_path / "c.png", file_format="pdf")
    with pytest.raises(tl.InvalidArgumentError):
        drawing.save(None)


def test_the_same_trace_gives_the_same_bytes(stack, tmp_path):
    for file_format in FORMATS:
        one = stack.draw(tmp_path / "one", file_format=file_format).path.read_bytes()
        two = stack.draw(tmp_path / "two", file_format=file_format).path.read_bytes()
        assert one == two


def test_written_files_have_the_usual_permissions(mlp, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("x")
    drawing = mlp.draw(tmp_path / "a.svg")
    assert drawing.path.stat().st_mode == plain.stat().st_mode


def test_notebooks_show_the_svg_no_wider_than_the_page(stack):
    bundle = stack.draw()._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/html", "text/plain"}
    width = re.search(r"max-width:(\d+)px", bundle["text/html"])
    assert width is not None
    assert int(width.group(1)) <= 1200
    wide = tl.trace(lambda x: [x + i for i in range(40)], torch.ones(1)).draw()
    assert "max-width:1200px" in wide._repr_mimebundle_()["text/html"]


def test_a_notebook_prints_no_path(mlp, tmp_path, monkeypatch, capsys):
    class FakeIPython:
        @staticmethod
        def get_ipython():
            return object()

    monkeypatch.setitem(sys.modules, "IPython", FakeIPython)
    mlp.draw(tmp_path / "a.svg")
    assert capsys.readouterr().out == ""


def test_repr_and_parts(mlp):
    drawing = mlp.draw()
    assert repr(drawing) == "Drawing('Sequential', 5 nodes, 4 edges)"
    assert [node.id for node in drawing.nodes] == [op.label for op in mlp.ops]
    assert isinstance(drawing.caption, tuple)
    assert drawing.boxes == []


def test_the_example_of_the_views_page(tmp_path):
    example = """
from pathlib import Path

import torch
import torch.nn as nn

import torchlens as tl

trace = tl.trace(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.randn(2, 8))
out = Path(globals().get("DOCS_TMPDIR", "/tmp")) / "speed"
trace.draw(view="speed", theme="paper", file_format="svg", path=str(out))
"""
    exec(compile(example, "example", "exec"), {"DOCS_TMPDIR": str(tmp_path)})
    assert (tmp_path / "speed.svg").read_text().count("<svg") == 1


def test_drawing_moves_nothing_in_the_process(mlp, tmp_path):
    state = torch.get_rng_state()
    mlp.draw(tmp_path / "a.png")
    assert torch.equal(state, torch.get_rng_state())
