"""Times of layout and SVG on the shapes of real models, optionally against plain nested ``dot``.

    python benchmarks/drawing.py [--compare] [--only NAME]

``--compare`` lays the same scenes out with Graphviz' own clusters in a subprocess that gets 60 s.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from torchlens.drawing.layout import lay_out
from torchlens.drawing.output import render
from torchlens.drawing.scene import Row, Scene, SceneBox, SceneEdge, SceneNode

LIMIT = 60.0


class Maker:
    """Collects a scene in execution order."""

    def __init__(self, title: str) -> None:
        self.scene = Scene(title=title)

    def op(self, name: str, title: str, after: tuple[str, ...], scope: str = "") -> str:
        rows = (Row(title, "title"), Row("(1, 64, 768)", "shape"), Row("1,536 params", "detail"))
        self.scene.nodes.append(SceneNode(name, rows, scope))
        self.scene.edges += [SceneEdge(source, name) for source in after]
        return name

    def box(self, name: str, scope: str = "") -> str:
        self.scene.boxes.append(SceneBox(name, (Row(name, "title"), Row("Block", "detail")), scope))
        return name

    def chain(self, prefix: str, titles: str, x: str, scope: str) -> str:
        for title in titles.split():
            x = self.op(f"{prefix}.{title}", f"{title} · {prefix}", (x,), scope)
        return x


def gpt(blocks: int) -> Scene:
    m = Maker(f"GPT {blocks}")
    x = m.op("ids", "ids", ())
    x = m.op("add", "add", (m.op("wte", "embedding", (x,)), m.op("wpe", "embedding", ())))
    for k in range(blocks):
        h = m.box(f"h.{k}")
        y = m.op(f"{h}.ln_1", f"layer_norm · {h}.ln_1", (x,), h)
        at = m.box(f"{h}.attn", h)
        y = m.chain(f"{h}.attn", "c_attn split", y, at)
        heads = [m.chain(f"{h}.attn.{c}", "view transpose", y, at) for c in "qkv"]
        scores = m.op(f"{h}.qk", "matmul", (heads[0], heads[1]), at)
        probs = m.chain(f"{h}.attn.s", "div mask softmax drop", scores, at)
        y = m.op(f"{h}.av", "matmul", (probs, heads[2]), at)
        y = m.chain(f"{h}.attn.o", "transpose reshape c_proj dropout", y, at)
        x = m.op(f"{h}.add1", "add", (y, x), h)
        y = m.op(f"{h}.ln_2", f"layer_norm · {h}.ln_2", (x,), h)
        x = m.op(
            f"{h}.add2", "add", (m.chain(f"{h}.mlp", "fc gelu proj drop", y, m.box(f"{h}.mlp", h)), x), h
        )
    m.chain("end", "ln_f lm_head output", x, "")
    return m.scene


def resnet(*layers: int, convs: int) -> Scene:
    m = Maker(f"ResNet {layers}")
    x = m.chain("stem", "conv bn relu maxpool", m.op("x", "x", ()), "")
    for n, count in enumerate(layers, 1):
        outer = m.box(f"layer{n}")
        for k in range(count):
            b = m.box(f"layer{n}.{k}", outer)
            titles = " ".join(f"conv{c} bn{c} relu{c}" for c in range(1, convs + 1)).rsplit(" ", 1)[0]
            y = m.chain(b, titles, x, b)
            if k == 0:
                x = m.chain(f"{b}.down", "conv bn", x, m.box(f"{b}.down", b))
            x = m.op(f"{b}.relu", "relu", (m.op(f"{b}.add", "add", (y, x), b),), b)
    m.chain("end", "avgpool flatten fc output", x, "")
    return m.scene


def densenet() -> Scene:
    m = Maker("DenseNet-121")
    x = m.chain("stem", "conv bn relu pool", m.op("x", "x", ()), "")
    for n, count in enumerate((6, 12, 24, 16), 1):
        box, grown = m.box(f"block{n}"), [x]
        for k in range(count):
            y = m.op(f"{box}.{k}.cat", "cat", tuple(grown), box)
            grown.append(m.chain(f"{box}.{k}", "bn1 relu1 conv1 bn2 relu2 conv2", y, box))
        x = m.op(f"{box}.cat", "cat", tuple(grown), box)
        x = m.chain(f"transition{n}", "bn relu conv pool", x, "")
    m.chain("end", "relu pool fc output", x, "")
    return m.scene


def rnn(steps: int) -> Scene:
    m = Maker(f"RNN {steps} steps")
    x, h = m.op("x", "x", ()), m.op("h0", "zeros", ())
    for t in range(steps):
        s = m.op(f"sel{t}", f"select({t})", (x,))
        a = m.op(f"ih{t}", "linear · ih", (s,))
        b = m.op(f"hh{t}", "linear · hh", (h,))
        h = m.op(f"tanh{t}", "tanh", (m.op(f"add{t}", "add", (a, b)),))
    m.op("out", "output", (h,))
    return m.scene


def chain_of_blocks(ops: int) -> Scene:
    m = Maker(f"{ops} ops in blocks")
    x = m.op("x", "x", ())
    for k in range(ops // 8):
        b = m.box(f"b{k}")
        y = m.chain(b, "ln fc gelu proj drop norm", x, b)
        x = m.op(f"{b}.id", "identity", (m.op(f"{b}.add", "add", (y, x), b),), b)
    return m.scene


def flat(ops: int) -> Scene:
    m = Maker(f"{ops} ops flat")
    x = before = m.op("x", "x", ())
    for k in range(ops // 4):
        y = m.chain(f"l{k}", "linear relu norm", x, "")
        before, x = x, m.op(f"add{k}", "add", (y, before) if k % 2 else (y, x))
    return m.scene


SHAPES: dict[str, Callable[[], Scene]] = {
    "gpt4": lambda: gpt(4),
    "gpt12": lambda: gpt(12),
    "gpt96": lambda: gpt(96),
    "resnet18": lambda: resnet(2, 2, 2, 2, convs=2),
    "resnet152": lambda: resnet(3, 8, 36, 3, convs=3),
    "densenet121": densenet,
    "rnn50": lambda: rnn(50),
    "rnn200": lambda: rnn(200),
    "rnn1000": lambda: rnn(1000),
    "rnn4000": lambda: rnn(4000),
    "flat5000": lambda: flat(5000),
    "blocks20000": lambda: chain_of_blocks(20000),
    "flat20000": lambda: flat(20000),
}


def plain_dot(name: str) -> None:
    """Lay one scene out with nested clusters, in this process."""
    import pygraphviz

    scene = SHAPES[name]()
    lines = ['digraph{node[shape=box fixedsize=true width=1.5 height=0.6 label=""]']
    inner: dict[str, list[str]] = {}
    for node in scene.nodes:
        inner.setdefault(node.scope, []).append(f'"{node.id}";')
    children: dict[str, list[str]] = {}
    for box in scene.boxes:
        children.setdefault(box.scope, []).append(box.id)

    def write(scope: str) -> str:
        boxes = "".join(f'subgraph "cluster_{b}"{{{write(b)}}}' for b in children.get(scope, ()))
        return "".join(inner.get(scope, ())) + boxes

    lines.append(write(""))
    lines += [f'"{edge.source}"->"{edge.target}"' for edge in scene.edges]
    graph = pygraphviz.AGraph(string="\n".join([*lines, "}"]))
    graph.layout("dot")


def timed_dot(name: str) -> str:
    command = [sys.executable, __file__, "--plain", name]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, timeout=LIMIT, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return f"> {LIMIT:.0f} s"
    spent = time.perf_counter() - start
    return f"{spent:6.2f} s" if done.returncode == 0 else f"failed ({done.returncode})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--only", choices=SHAPES)
    parser.add_argument("--plain", choices=SHAPES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        plain_dot(options.plain)
        return
    print(
        f"{'shape':12} {'nodes':>6} {'boxes':>6} {'layout':>8} {'svg':>7} {'stubs':>6} {'page':>16}",
        " plain dot",
    )
    for name in [options.only] if options.only else SHAPES:
        scene = SHAPES[name]()
        start = time.perf_counter()
        placed = lay_out(scene)
        middle = time.perf_counter()
        render(placed, "svg")
        end = time.perf_counter()
        page = f"{placed.width:.0f} x {placed.height:.0f}"
        print(
            f"{name:12} {len(scene.nodes):6} {len(scene.boxes):6}",
            f"{middle - start:6.2f} s {end - middle:5.2f} s "
            f"{placed.stub_edges:6} {page:>16}  {timed_dot(name) if options.compare else '-'}",
            flush=True,
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
