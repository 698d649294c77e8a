"""The command line: ``torchlens draw | summary | views | demo``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchlens.errors import CaptureError, InvalidArgumentError

WRONG_ARGUMENT = 2
FAILED_MODEL = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (2 for a wrong argument, 1 for a model that raised)."""
    parser = build_parser()
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except (InvalidArgumentError, CaptureError) as error:
        print(f"torchlens: {_one_line(error)}", file=sys.stderr)
        return WRONG_ARGUMENT


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    from torchlens import __version__

    parser = argparse.ArgumentParser(prog="torchlens", description="See what a PyTorch model really does.")
    parser.add_argument("--version", action="version", version=f"torchlens {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    draw = commands.add_parser("draw", help="trace a model and draw its graph")
    _add_model(draw)
    _add_drawing(draw)
    draw.set_defaults(run=run_draw)
    summary = commands.add_parser("summary", help="trace a model and print its modules")
    _add_model(summary)
    summary.add_argument("--depth", type=int, help="deepest nesting listed")
    summary.add_argument("--ops", action="store_true", help="print every op instead")
    summary.add_argument("--json", action="store_true", help="print totals and modules as JSON")
    summary.set_defaults(run=run_summary)
    views = commands.add_parser("views", help="list the premade views")
    views.set_defaults(run=run_views)
    demo = commands.add_parser("demo", help="draw built-in models in all views")
    demo.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to (demo)")
    demo.set_defaults(run=run_demo)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", help="package.module:name or path/file.py:name; a module or what makes one")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SHAPE",
        help="one positional input: 1x3x224x224, 1x16:int64, or tensor.pt; repeat for more",
    )
    parser.add_argument(
        "--kwargs", default="{}", metavar="JSON", help="keyword inputs; strings as for --input"
    )
    parser.add_argument("--fake", action="store_true", help="no arithmetic: shapes and costs only")
    parser.add_argument("--train", action="store_true", help="leave the model in training mode")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and random inputs (0)")


def _add_drawing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--out", required=True, help="file to write; its suffix chooses the format")
    for name in ("view", "theme", "direction", "module", "color-by", "size-by", "scale", "file-format"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--depth", type=int)
    parser.add_argument("--collapse")
    for name in ("rolled", "fold-repeats", "show-edge-shapes", "show-orphans", "show-legend"):
        parser.add_argument(f"--{name}", action="store_true", default=None)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other keyword of Trace.draw, as JSON",
    )


DRAWN = (
    "view theme direction module color_by size_by scale file_format depth collapse rolled fold_repeats "
    "show_edge_shapes show_orphans show_legend"
).split()


def run_draw(chosen: argparse.Namespace) -> int:
    """``torchlens draw``: a model that raises is drawn up to the op that failed."""
    from torchlens.cli_model import trace_of

    settings = {name: getattr(chosen, name) for name in DRAWN if getattr(chosen, name) is not None}
    settings.update(_settings(chosen.set))
    if "collapse" in settings:
        settings["collapse"] = _value(settings["collapse"])
    trace, error = trace_of(chosen)
    trace.draw(chosen.out, **settings)
    return _report(error)


def run_summary(chosen: argparse.Namespace) -> int:
    """``torchlens summary``."""
    from torchlens.cli_model import trace_of

    trace, error = trace_of(chosen)
    if chosen.json:
        from torchlens.trace.text import as_data

        print(json.dumps(as_data(trace), indent=2))
    else:
        print(str(trace) if chosen.ops else trace.summary(depth=chosen.depth))
    return _report(error)


def run_views(chosen: argparse.Namespace) -> int:
    """``torchlens views``: the nine and the question that each answers."""
    from torchlens.drawing.views import TABLE

    width = max(map(len, TABLE))
    for name, view in TABLE.items():
        print(f"{name.ljust(width)}  {view.question}")
    return 0


def run_demo(chosen: argparse.Namespace) -> int:
    """``torchlens demo``."""
    from torchlens.demo.gallery import write_gallery

    page = write_gallery(chosen.out)
    print(f"Open {page}")
    return 0


def _report(error: BaseException | None) -> int:
    if error is None:
        return 0
    print(f"torchlens: the model raised {type(error).__name__}: {_one_line(error)}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(note, file=sys.stderr)
    return FAILED_MODEL


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator:
            raise InvalidArgumentError(
                f"--set {pair!r} has no '='.",
                code="cli_set_invalid",
                argument="--set",
                value=pair,
                remedy="Write --set KEY=VALUE, such as --set dpi=300.",
            )
        found[key.replace("-", "_")] = _value(text)
    return found


def _value(text: str) -> Any:
    """JSON where it is JSON, else the string itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
