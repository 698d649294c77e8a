"""What notebooks show."""

from __future__ import annotations

import re
from html import unescape

import pytest
import torch

import torchlens as tl


def test_a_trace_shows_a_card_over_its_overview(gpt):
    bundle = gpt._repr_mimebundle_()
    assert bundle["text/plain"] == repr(gpt)
    assert "<svg " in bundle["text/html"]
    assert "GPT" in bundle["text/html"]
    assert "params" in bundle["text/html"]


def test_a_failed_trace_says_so():
    with pytest.raises(RuntimeError) as caught:
        tl.trace(lambda x: x @ torch.randn(7, 7), torch.randn(3, 3))
    assert "RuntimeError" in caught.value.trace._repr_mimebundle_()["text/html"]


def test_names_cannot_break_the_card(hostile):
    text = hostile._repr_mimebundle_()["text/html"]
    assert "<script" not in text
    assert "<img" not in text


def test_a_page_stands_in_a_frame_of_its_own(hostile):
    bundle = hostile.draw(file_format="html")._repr_mimebundle_()
    frame = bundle["text/html"]
    assert re.match(r'<iframe srcdoc="[^"<>]*" sandbox="allow-scripts" ', frame)
    assert "allow-same-origin" not in frame
    inside = unescape(re.search(r'srcdoc="([^"]*)"', frame).group(1))
    assert inside.startswith("<!DOCTYPE html>")


def test_a_picture_stands_inline(gpt):
    assert gpt.draw()._repr_mimebundle_()["text/html"].count("<svg ") == 1
