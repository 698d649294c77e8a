"""From a trace to a finished drawing, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlens.drawing import captions, evidence, settings
from torchlens.drawing.assemble import assemble
from torchlens.drawing.drawing import Drawing as Drawing
from torchlens.drawing.layout import Placed, lay_out
from torchlens.drawing.layout.stubs import choose
from torchlens.drawing.layout.tree import cut, grow
from torchlens.drawing.legend import legend_of
from torchlens.drawing.overlay import layers_of
from torchlens.drawing.page import page
from torchlens.drawing.plan import graph_of, plan
from torchlens.drawing.target import target_of
from torchlens.drawing.view_captions import closing_lines, view_lines

if TYPE_CHECKING:
    from torchlens.drawing.plan import Plan
    from torchlens.drawing.scene import Scene
    from torchlens.drawing.settings import Settings
    from torchlens.trace.trace import Trace


def draw(trace: Trace, path: Any = None, **keywords: Any) -> Drawing:
    """Draw a trace.

    Everything is checked before any work, and nothing is written on a refusal.

    Parameters
    ----------
    trace : Trace
    path : path-like, optional
        File to write; its suffix, or ``file_format``, names the format.  Nothing is written without it.
    view : str, optional
        One of the nine views; each is a bundle of the settings below, and every keyword wins over it.
    theme : {"torchlens", "paper", "dark", "colorblind", "high_contrast"}
    file_format : {"svg", "pdf", "png", "html", "dot", "json", "txt"}, optional
    rolled : bool
        One node per layer instead of per op.
    module : str or Module, optional
        Draw only the inside of a module, with its neighbours outside as stubs.
    depth : int, optional
        Deepest module nesting drawn open.
    collapse : {"none", "auto"} or float
        Close modules up to a size: a level from 0, nothing, to 1, everything; or search a legible one.
    fold_repeats : bool
        Of equal neighbours draw the first, and the others as one node.
    direction : {"topdown", "bottomup", "leftright"}
    color_by, size_by : str or callable, optional
        ``time bytes flops params dims saved_for_backward pass``, a numeric field of :class:`Op`, or a
        function of the op (the layer in a rolled drawing).
    scale : {"rank", "linear", "log", "sqrt"}, optional
        Of the colour, or of the size where nothing is coloured; rank for colour, sqrt for size.
    stack_by : "pass" or callable, optional
        Put what has equal values side by side.
    node_style : {"default", "profiling"}
        ``"profiling"`` adds time, bytes, FLOPs and the line of code.
    node_spec_fn : callable, optional
        ``fn(node, spec) -> NodeSpec or None``: the last word on every node.
    show_shapes, show_edge_shapes, show_redundant_args, show_orphans, show_saved_for_backward : bool
    show_buffers : {"meaningful", "never", "always"}
    show_legend : bool, optional
        On by default where colour or size shows a value.
    long_edges : {"auto", "line", "stub"}
        Far-reaching edges of crowded parts as tags, as lines, or all as tags.
    wrap : bool, optional
        Wrap tall drawings into columns.
    font_size : float, optional
    dpi : float
        Pixels per inch of PNG.

    Returns
    -------
    Drawing

    Raises
    ------
    InvalidArgumentError
        For anything that cannot be honoured, with a stable code and what to do instead.
    """
    asked = settings.read(keywords)
    target = target_of(path, asked["file_format"])
    chosen = evidence.check(trace, asked)
    graph = graph_of(trace, chosen)

    def placed() -> Placed:
        visible = plan(graph, chosen)
        scene = scene_of(visible, chosen)
        return lay_out(scene)

    return Drawing(
        placed if target.file_format == "html" else placed(),
        target,
        dpi=int(chosen["dpi"]),
        notes=evidence.census(trace, chosen),
        page=lambda: page(trace, asked),
    )


def scene_of(visible: Plan, chosen: Settings) -> Scene:
    """The scene of a visible graph with header, caption and legend."""
    trace = visible.shape.graph.trace
    layers = layers_of(visible.shape, chosen)
    scene = assemble(visible.shape, chosen, layers.overlay)
    scene.header = captions.header_lines(trace)
    scene.caption = captions.wrapped(
        [
            *view_lines(visible, layers, chosen),
            *captions.channel_lines(layers, visible, chosen),
            *closing_lines(visible, layers, chosen),
            *captions.general_lines(visible, chosen, _tagged(scene)),
        ]
    )
    scene.legend = legend_of(visible.shape, layers, chosen)
    return scene


def _tagged(scene: Scene) -> int:
    """Number of edges that the layout will draw as tags."""
    tree = grow(scene)
    return len(choose(scene, tree, cut(scene, tree)))
