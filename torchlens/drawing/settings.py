"""Settings: what each keyword may be, and the one rule by which layers of settings win."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from torchlens.drawing.output import FORMATS
from torchlens.drawing.scene import Direction
from torchlens.drawing.themes import THEMES
from torchlens.errors import InvalidArgumentError, check_choice, check_keywords, check_type, short

Source = Literal["theme", "view", "keyword", "mark", "channel", "styling", "node_spec_fn"]
ORDER: tuple[Source, ...] = get_args(Source)
"""Who may set something, weakest first: a later source wins."""

SCALES = ("rank", "linear", "log", "sqrt")
VIEWS = (
    "overview",
    "debug",
    "speed",
    "memory",
    "compute",
    "dims",
    "transformer",
    "sequence",
    "interventions",
)


class Setting(NamedTuple):
    """A value and who set it."""

    value: Any
    source: Source


def resolve(layers: Mapping[Source, Mapping[str, Any]]) -> dict[str, Setting]:
    """Combine layers by :data:`ORDER`: of all that set a name, the strongest wins."""
    found: dict[str, Setting] = {}
    for source in ORDER:
        for name, value in layers.get(source, {}).items():
            found[name] = Setting(value, source)
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    """The resolved settings of one drawing; ``notes`` say what was dropped and why."""

    table: Mapping[str, Setting]
    notes: tuple[str, ...] = field(default=())

    def __getitem__(self, name: str) -> Any:
        return self.table[name].value

    def source(self, name: str) -> Source:
        """Who set a setting."""
        return self.table[name].source

    def explicit(self, name: str) -> bool:
        """Whether the caller gave it as a keyword."""
        return self.table[name].source == "keyword"

    def replaced(self, name: str, value: Any, *, note: str = "") -> Settings:
        """These settings with one value replaced, and a note for the caption."""
        table = {**self.table, name: Setting(value, self.table[name].source)}
        return Settings(table, (*self.notes, note) if note else self.notes)


Check = Callable[[str, Any], None]


def _one_of(*choices: str) -> Check:
    return lambda name, value: check_choice(value, choices, argument=name, code=f"draw_{name}_invalid")


def _of_type(types: type | tuple[type, ...], wanted: str) -> Check:
    return lambda name, value: check_type(
        value, types, argument=name, code=f"draw_{name}_invalid", wanted=wanted
    )


def _refuse(name: str, value: Any, remedy: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name}={short(value)} is not possible.",
        code=f"draw_{name}_invalid",
        argument=name,
        value=value,
        remedy=remedy,
    )


_FLAG = _of_type(bool, "True or False")


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _depth(name: str, value: Any) -> None:
    check_type(value, int, argument=name, code="draw_depth_invalid", wanted="a whole number, or None")
    if value < 0:
        raise _refuse(name, value, "Pass 0 or more.")


def _collapse(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_choice(value, ("none", "auto"), argument=name, code="draw_collapse_invalid")
        return
    wanted = '"none", "auto", or a level from 0 to 1'
    check_type(value, (int, float), argument=name, code="draw_collapse_invalid", wanted=wanted)
    if not 0 <= value <= 1:
        raise _refuse(name, value, f"Pass {wanted}.")


def _callable(name: str, value: Any) -> None:
    if not callable(value):
        raise _refuse(name, value, "Pass a function fn(node, spec) that returns a NodeSpec or None.")


def _stack_by(name: str, value: Any) -> None:
    if not callable(value):
        check_choice(value, ("pass",), argument=name, code="draw_stack_by_invalid")


def _number(low: float, high: float) -> Check:
    def check(name: str, value: Any) -> None:
        wanted = f"a number from {low:g} to {high:g}"
        check_type(value, (int, float), argument=name, code=f"draw_{name}_invalid", wanted=wanted)
        if not low <= value <= high:
            raise _refuse(name, value, f"Pass {wanted}.")

    return check


def _channel(name: str, value: Any) -> None:
    from torchlens.drawing.channels import check_channel

    check_channel(name, value)


def _module(name: str, value: Any) -> None:
    from torchlens.trace.parts import Module

    wanted = "a module's address, or a module of this trace"
    check_type(value, (str, Module), argument=name, code="draw_module_invalid", wanted=wanted)


class Keyword(NamedTuple):
    """Default and check of one keyword."""

    default: Any
    check: Check


FILE_FORMATS = ("svg", "pdf", "png", "html", "dot", "json", "txt")
"""Suffixes that name a format; those in ``FORMATS`` can be written."""


def _file_format(name: str, value: Any) -> None:
    check_choice(value, known_formats(), argument=name, code="draw_file_format_invalid")


def known_formats() -> tuple[str, ...]:
    """The formats that a writer exists for, in the usual order."""
    return (*(f for f in FILE_FORMATS if f in FORMATS), *(f for f in FORMATS if f not in FILE_FORMATS))


KEYWORDS: Mapping[str, Keyword] = {
    "view": Keyword(None, _optional(_one_of(*VIEWS))),
    "theme": Keyword("torchlens", _one_of(*THEMES)),
    "file_format": Keyword(None, _optional(_file_format)),
    "rolled": Keyword(False, _FLAG),
    "module": Keyword(None, _optional(_module)),
    "depth": Keyword(None, _optional(_depth)),
    "collapse": Keyword("none", _collapse),
    "fold_repeats": Keyword(False, _FLAG),
    "direction": Keyword("topdown", _one_of(*get_args(Direction))),
    "color_by": Keyword(None, _optional(_channel)),
    "size_by": Keyword(None, _optional(_channel)),
    "scale": Keyword(None, _optional(_one_of(*SCALES))),
    "stack_by": Keyword(None, _optional(_stack_by)),
    "node_style": Keyword("default", _one_of("default", "profiling")),
    "node_spec_fn": Keyword(None, _optional(_callable)),
    "show_shapes": Keyword(True, _FLAG),
    "show_edge_shapes": Keyword(False, _FLAG),
    "show_buffers": Keyword("meaningful", _one_of("never", "meaningful", "always")),
    "show_redundant_args": Keyword(False, _FLAG),
    "show_orphans": Keyword(False, _FLAG),
    "show_legend": Keyword(None, _optional(_FLAG)),
    "show_saved_for_backward": Keyword(False, _FLAG),
    "long_edges": Keyword("auto", _one_of("auto", "line", "stub")),
    "wrap": Keyword(None, _optional(_FLAG)),
    "font_size": Keyword(None, _optional(_number(4, 72))),
    "dpi": Keyword(150, _number(20, 1200)),
}


def read(given: Mapping[str, Any]) -> Settings:
    """Check keywords one by one and together, and resolve them with their view's settings.

    Raises
    ------
    InvalidArgumentError
        For an unknown keyword, a wrong value, or keywords that contradict each other.
    """
    from torchlens.drawing.views import SETTINGS

    check_keywords(given, tuple(KEYWORDS), where="draw", code="draw_keyword_unknown")
    for name, value in given.items():
        KEYWORDS[name].check(name, value)
    view = given.get("view")
    layers: dict[Source, Mapping[str, Any]] = {
        "theme": {name: keyword.default for name, keyword in KEYWORDS.items()},
        "view": SETTINGS[view] if view else {},
        "keyword": given,
    }
    settings = _yielding(Settings(resolve(layers)))
    _check_together(settings)
    return settings


def _yielding(settings: Settings) -> Settings:
    """Let what a view set give way to a keyword that it contradicts."""
    if settings.explicit("stack_by") and settings["stack_by"] is not None and not settings.explicit("rolled"):
        return settings.replaced("rolled", False)
    return settings


def _check_together(settings: Settings) -> None:
    channels = settings["color_by"], settings["size_by"]
    if settings.explicit("scale") and settings["scale"] and channels == (None, None):
        raise _contradiction(
            settings,
            "scale",
            reason="nothing is coloured or sized by a value",
            code="draw_scale_without_channel",
            remedy="Pass color_by= or size_by= as well.",
        )
    if settings["rolled"] and settings["stack_by"] is not None and settings.explicit("stack_by"):
        raise _contradiction(
            settings,
            "stack_by",
            reason="a rolled drawing has all passes in one node",
            code="draw_stack_by_rolled",
            remedy="Pass rolled=False, or leave stack_by out.",
        )
    level = settings["collapse"]
    if settings["depth"] is not None and level not in ("none", 0) and settings.explicit("collapse"):
        raise _contradiction(
            settings,
            "depth",
            reason=f"collapse={level!r} decides what is open as well",
            code="draw_depth_with_collapse",
            remedy="Pass one of the two.",
        )


def _contradiction(
    settings: Settings, name: str, *, reason: str, code: str, remedy: str
) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name}={short(settings[name])} contradicts the other settings: {reason}.",
        code=code,
        argument=name,
        value=settings[name],
        remedy=remedy,
    )
