"""Scenes written by hand that look like real models, for tests and for looking at."""

from __future__ import annotations

from torchlens.drawing.scene import (
    Legend,
    LegendEntry,
    LegendRamp,
    Row,
    Scene,
    SceneBox,
    SceneEdge,
    SceneNode,
)
from torchlens.drawing.themes import THEMES, Theme


class Builder:
    """Collects a scene in execution order with the colours of a theme."""

    def __init__(self, title: str, theme: str = "torchlens", **options: object) -> None:
        self.theme: Theme = THEMES[theme]
        self.scene = Scene(title=title, theme=theme, **options)  # type: ignore[arg-type]
        self.depth = {"": -1}

    def node(
        self,
        name: str,
        title: str,
        *rows: str,
        scope: str = "",
        role: str = "",
        after: object = (),
        **look: object,
    ) -> str:
        theme = self.theme
        kind = theme.roles.get(role)
        fill = kind.fill if kind else theme.node_fill
        texts = [Row(title, "title")]
        texts += [Row(row, "shape" if row.startswith("(") else "detail") for row in rows]
        options = {
            "fill": fill,
            "ink": theme.ink_on(fill),
            "stroke": kind.stroke if kind else theme.node_stroke,
            "stroke_width": (kind.width if kind else 1.0) * theme.node_width,
            "dashed": kind.dashed if kind else False,
            **look,
        }
        options["ink"] = theme.ink_on(str(options["fill"]))
        self.scene.nodes.append(SceneNode(name, tuple(texts), scope, **options))  # type: ignore[arg-type]
        for source in [after] if isinstance(after, str) else after:  # type: ignore[attr-defined]
            self.edge(source, name)
        return name

    def box(self, name: str, title: str, kind: str = "", scope: str = "", **look: object) -> str:
        theme, depth = self.theme, self.depth[scope] + 1
        self.depth[name] = depth
        rows = (Row(title, "title"), *([Row(kind, "detail")] if kind else []))
        options = {
            "fill": theme.box_fill(depth),
            "ink": theme.box_ink,
            "stroke": theme.box_stroke,
            "stroke_width": theme.box_width,
            **look,
        }
        self.scene.boxes.append(SceneBox(name, rows, scope, **options))  # type: ignore[arg-type]
        return name

    def edge(self, source: str, target: str, **look: object) -> None:
        self.scene.edges.append(SceneEdge(source, target, **look))  # type: ignore[arg-type]


def resnet(theme: str = "torchlens", *, blocks: tuple[int, ...] = (2, 2, 2, 2), **options: object) -> Scene:
    b = Builder("ResNet-18", theme, **options)
    b.scene.header = ("69 ops · 11.7 M params, all trainable", "input x: (1, 3, 224, 224) float32")
    b.scene.legend = Legend(
        entries=(
            LegendEntry("input", b.theme.roles["input"].fill, b.theme.roles["input"].stroke),
            LegendEntry("output", b.theme.roles["output"].fill, b.theme.roles["output"].stroke),
            LegendEntry(
                "trainable parameters", b.theme.roles["trainable"].fill, b.theme.roles["trainable"].stroke
            ),
        )
    )
    x = b.node("input", "x", "(1, 3, 224, 224)", role="input")
    x = b.node(
        "conv1",
        "conv2d · conv1",
        "(1, 64, 112, 112)",
        "64 · 7×7, stride 2 · 9,408 params",
        role="trainable",
        after=x,
    )
    x = b.node("bn1", "batch_norm · bn1", "(1, 64, 112, 112)", "128 params", role="trainable", after=x)
    x = b.node("relu", "relu", "(1, 64, 112, 112)", after=x)
    x = b.node("maxpool", "max_pool2d · maxpool", "(1, 64, 56, 56)", "3×3, stride 2", after=x)
    for layer, count in enumerate(blocks, 1):
        wide, size = 32 * 2**layer, 112 // 2**layer
        outer = b.box(f"layer{layer}", f"layer{layer}", "Sequential")
        for k in range(count):
            name = f"layer{layer}.{k}"
            shape = f"(1, {wide}, {size}, {size})"
            b.box(name, name, "BasicBlock", outer)
            y = b.node(
                f"{name}.conv1",
                f"conv2d · {name}.conv1",
                shape,
                f"{wide} · 3×3 · {wide * wide * 9:,} params",
                scope=name,
                role="trainable",
                after=x,
            )
            y = b.node(
                f"{name}.bn1",
                f"batch_norm · {name}.bn1",
                shape,
                f"{2 * wide} params",
                scope=name,
                role="trainable",
                after=y,
            )
            y = b.node(f"{name}.relu", "relu", shape, scope=name, after=y)
            y = b.node(
                f"{name}.conv2",
                f"conv2d · {name}.conv2",
                shape,
                f"{wide} · 3×3 · {wide * wide * 9:,} params",
                scope=name,
                role="trainable",
                after=y,
            )
            y = b.node(
                f"{name}.bn2",
                f"batch_norm · {name}.bn2",
                shape,
                f"{2 * wide} params",
                scope=name,
                role="trainable",
                after=y,
            )
            if layer > 1 and k == 0:
                down = b.box(f"{name}.downsample", "downsample", "Sequential", name)
                x = b.node(
                    f"{name}.d0",
                    f"conv2d · {name}.downsample.0",
                    shape,
                    f"{wide} · 1×1, stride 2",
                    scope=down,
                    role="trainable",
                    after=x,
                )
                x = b.node(
                    f"{name}.d1",
                    f"batch_norm · {name}.downsample.1",
                    shape,
                    scope=down,
                    role="trainable",
                    after=x,
                )
            y = b.node(f"{name}.add", "add", shape, scope=name, after=(y, x))
            x = b.node(f"{name}.relu2", "relu", shape, scope=name, after=y)
    x = b.node("avgpool", "adaptive_avg_pool2d · avgpool", "(1, 512, 1, 1)", after=x)
    x = b.node("flatten", "flatten(1)", "(1, 512)", after=x)
    x = b.node("fc", "linear · fc", "(1, 1000)", "513,000 params", role="trainable", after=x)
    b.node("output", "output", "(1, 1000)", role="output", after=x)
    return b.scene


def gpt(theme: str = "torchlens", *, blocks: int = 4, colored: bool = True, **options: object) -> Scene:
    b = Builder("GPT-2", theme, **options)
    b.scene.header = (f"{blocks * 29 + 8} ops · 124.4 M params, all trainable", "input ids: (1, 64) int64")
    if colored:
        b.scene.caption = (
            f"Encoded {blocks * 29} of {blocks * 29 + 4} ops; colour is the rank of time in milliseconds.",
            "Colour shows rank order, not proportion.",
            "Times come from an instrumented run: compare ops with each other, not with production latency.",
        )
        b.scene.legend = Legend(
            (
                LegendEntry("aggregate, not encoded", b.theme.roles["aggregate"].fill),
                LegendEntry("NaN", "#FFFFFF", None, motif="diagonal"),
            ),
            (LegendRamp("time per op (ms), by rank", b.theme.ramp, "0.004", "0.081", "3.92"),),
        )
    count = 0

    def heat() -> dict[str, object]:
        nonlocal count
        count += 1
        return {"fill": b.theme.ramp[count * 5 % 9]} if colored else {}

    ids = b.node("ids", "input_ids", "(1, 64)", role="input")
    b.box("t", "transformer", "GPT2Model")
    wte = b.node(
        "wte", "embedding · wte", "(1, 64, 768)", "38,597,376 params", scope="t", role="trainable", after=ids
    )
    pos = b.node("arange", "arange(64)", "(64)", scope="t", role="constant")
    wpe = b.node(
        "wpe", "embedding · wpe", "(64, 768)", "786,432 params", scope="t", role="trainable", after=pos
    )
    x = b.node("add", "add", "(1, 64, 768)", scope="t", after=(wte, wpe))
    x = b.node("drop", "dropout(p=0.1)", "(1, 64, 768)", scope="t", after=x)
    for k in range(blocks):
        x = _gpt_block(b, k, x, heat)
    x = b.node(
        "ln_f", "layer_norm · ln_f", "(1, 64, 768)", "1,536 params", scope="t", role="trainable", after=x
    )
    x = b.node("head", "linear · lm_head", "(1, 64, 50257)", "38,597,376 params", role="trainable", after=x)
    b.node("logits", "output", "(1, 64, 50257)", role="output", after=x)
    return b.scene


def _gpt_block(b: Builder, k: int, x: str, heat: object) -> str:
    h, wide = f"h.{k}", "(1, 64, 768)"
    b.box(h, h, "GPT2Block", "t")

    def op(name: str, title: str, *rows: str, scope: str, after: object, role: str = "") -> str:
        return b.node(f"{h}.{name}", title, *rows, scope=scope, after=after, role=role, **heat())  # type: ignore[operator]

    y = op("ln_1", f"layer_norm · {h}.ln_1", wide, "1,536 params", scope=h, after=x, role="trainable")
    at = b.box(f"{h}.attn", f"{h}.attn", "GPT2Attention", h)
    y = op(
        "c_attn",
        f"conv1d · {h}.attn.c_attn",
        "(1, 64, 2304)",
        "1,771,776 params",
        scope=at,
        after=y,
        role="trainable",
    )
    y = op("split", "split(768, dim=2)", "3 × (1, 64, 768)", scope=at, after=y)
    q = op("q", "view", "(1, 64, 12, 64)", scope=at, after=y)
    kk = op("k", "view", "(1, 64, 12, 64)", scope=at, after=y)
    v = op("v", "view", "(1, 64, 12, 64)", scope=at, after=y)
    q = op("qt", "transpose(1, 2)", "(1, 12, 64, 64)", scope=at, after=q)
    kk = op("kt", "transpose(1, 2)", "(1, 12, 64, 64)", scope=at, after=kk)
    v = op("vt", "transpose(1, 2)", "(1, 12, 64, 64)", scope=at, after=v)
    y = op(
        "sdpa",
        "scaled_dot_product_attention",
        "(1, 12, 64, 64)",
        "is_causal=True",
        scope=at,
        after=(q, kk, v),
    )
    y = op("back", "transpose(1, 2)", "(1, 64, 12, 64)", scope=at, after=y)
    y = op("reshape", "reshape", wide, scope=at, after=y)
    y = op("c_proj", f"conv1d · {h}.attn.c_proj", wide, "590,592 params", scope=at, after=y, role="trainable")
    y = op("adrop", "dropout(p=0.1)", wide, scope=at, after=y)
    x = op("add1", "add", wide, scope=h, after=(y, x))
    y = op("ln_2", f"layer_norm · {h}.ln_2", wide, "1,536 params", scope=h, after=x, role="trainable")
    m = b.box(f"{h}.mlp", f"{h}.mlp", "GPT2MLP", h)
    y = op(
        "fc",
        f"conv1d · {h}.mlp.c_fc",
        "(1, 64, 3072)",
        "2,362,368 params",
        scope=m,
        after=y,
        role="trainable",
    )
    y = op("pow", "pow(3)", "(1, 64, 3072)", scope=m, after=y)
    a = op("mul1", "mul(0.044715)", "(1, 64, 3072)", scope=m, after=y)
    a = op("addm", "add", "(1, 64, 3072)", scope=m, after=(f"{h}.fc", a))
    a = op("mul2", "mul(0.797884)", "(1, 64, 3072)", scope=m, after=a)
    a = op("tanh", "tanh", "(1, 64, 3072)", scope=m, after=a)
    a = op("add1p", "add(1.0)", "(1, 64, 3072)", scope=m, after=a)
    half = op("half", "mul(0.5)", "(1, 64, 3072)", scope=m, after=f"{h}.fc")
    y = op("gelu", "mul", "(1, 64, 3072)", scope=m, after=(half, a))
    y = op("proj", f"conv1d · {h}.mlp.c_proj", wide, "2,360,064 params", scope=m, after=y, role="trainable")
    y = op("mdrop", "dropout(p=0.1)", wide, scope=m, after=y)
    return op("add2", "add", wide, scope=h, after=(y, x))


def rolled_loop(theme: str = "torchlens", **options: object) -> Scene:
    b = Builder("Recurrent model", theme, **options)
    b.scene.header = ("23 ops in 7 layers · 8,512 params, all trainable", "input x: (8, 1, 32) float32")
    x = b.node("x", "x", "(8, 1, 32)", role="input")
    h0 = b.node("h0", "zeros", "(1, 64)", role="constant")
    b.box("cell", "cell", "Cell (×8)")
    s = b.node("sel", "select (×8)", "(1, 32)", after=x)
    i = b.node(
        "ih", "linear · cell.ih (×8)", "(1, 64)", "2,112 params", scope="cell", role="trainable", after=s
    )
    h = b.node(
        "hh", "linear · cell.hh (×8)", "(1, 64)", "4,160 params", scope="cell", role="trainable", after=h0
    )
    a = b.node("a", "add (×8)", "(1, 64)", scope="cell", after=(i, h))
    t = b.node("t", "tanh (×8)", "(1, 64)", scope="cell", after=a)
    b.edge(t, h, back=True, label="passes 1–7")
    n = b.node("norm", "mul(0.99) (×8)", "(1, 64)", after=t)
    b.edge(n, n, back=True, label="1–7")
    o = b.node("out", "linear · out", "(1, 10)", "650 params", role="trainable")
    b.edge(n, o, label="pass 8")
    b.node("y", "output", "(1, 10)", role="output", after=o)
    return b.scene


def branch(theme: str = "torchlens", **options: object) -> Scene:
    b = Builder("Gate", theme, **options)
    b.scene.header = ("9 ops · 1,120 params, 560 trainable", "input x: (4, 16) float32")
    b.scene.caption = ("One of two arms ran; the other is not in this picture.",)
    x = b.node("x", "x", "(4, 16)", role="input")
    m = b.node("mean", "mean", "()", after=x)
    c = b.node("gt", "gt(0)", "()", "IF: TRUE", role="branch", after=m)
    l1 = b.node("a", "linear · a", "(4, 16)", "272 params", role="trainable")
    b.edge(x, l1, label="then")
    l2 = b.node("frozen", "linear · frozen", "(4, 16)", "272 params", role="frozen", after=l1)
    buf = b.node("buf", "running_mean", "(16)", role="buffer")
    nn = b.node("nan", "log", "(4, 16)", "NaN 3 of 64", after=l2, motif="diagonal")
    e = b.node("edit", "add", "(4, 16)", "edited: ablate", role="edited", after=(nn, buf))
    ch = b.node("ch", "relu", "(4, 16)", "max change 0.31", role="changed", after=e)
    f = b.node("fail", "matmul", "failed here", role="failed", after=ch)
    b.node("y", "output", "(4, 2)", role="output", after=f)
    b.edge(c, l1, dashed=True, label="IF")
    return b.scene


def sequence(theme: str = "torchlens", *, steps: int = 5, **options: object) -> Scene:
    b = Builder("RNN, unrolled", theme, **options)
    b.scene.caption = ("Boxes side by side ran in the same pass, not in parallel.",)
    x = b.node("x", "x", "(5, 1, 32)", role="input")
    h = b.node("h0", "zeros", "(1, 64)", role="constant")
    for t in range(steps):
        fill = b.theme.ramp[t * 8 // max(steps - 1, 1)]
        look = {"column": t, "fill": fill}
        s = b.node(f"select.{t}", f"select({t})", "(1, 32)", after=x, **look)
        i = b.node(f"ih.{t}", "linear · ih", "(1, 64)", after=s, **look)
        g = b.node(f"hh.{t}", "linear · hh", "(1, 64)", after=h, **look)
        a = b.node(f"add.{t}", "add", "(1, 64)", after=(i, g), **look)
        h = b.node(f"tanh.{t}", "tanh", "(1, 64)", after=a, **look)
    b.node("y", "output", "(1, 64)", role="output", after=h)
    return b.scene


def dims(theme: str = "torchlens", **options: object) -> Scene:
    b = Builder("How tensors change size", theme, **options)
    b.scene.caption = ("Box area shows element count, not shape.",)
    x = ""
    sides = {"x": 120.0, "conv2d · conv1": 200.0, "relu": 200.0, "max_pool2d": 90.0}
    sides |= {"conv2d · conv2": 44.0, "mean": 20.0, "linear · fc": 12.0}
    for k, (title, side) in enumerate(sides.items()):
        if k == 4:
            b.box("tail", "tail", "Sequential")
        scope = "tail" if k >= 4 else ""
        x = b.node(str(k), title, f"(1, {k + 1}, 8)", scope=scope, after=x or (), size=(side, side * 0.6))
    return b.scene
