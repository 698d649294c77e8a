"""Make the shipped font files and the width table from the fonts of a Debian machine.

Run once by hand (``apt-get install fonts-inter fonts-dejavu-core``, then ``python build.py``); nothing
at run time needs this file.  README.md says what comes from where under which licence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont, newTable

HERE = Path(__file__).parent
INTER = Path("/usr/share/fonts/opentype/inter")
DEJAVU = Path("/usr/share/fonts/truetype/dejavu")
LETTERS = [
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *range(0x370, 0x400),
    *range(0x400, 0x460),
    *range(0x2010, 0x2050),
    *range(0x2070, 0x20A0),
    *range(0x2190, 0x2200),
    *range(0x2200, 0x2300),
    *range(0x25A0, 0x2600),
    0xFFFD,
]
SOURCES = {
    "Inter-Regular": (INTER / "Inter-Regular.otf", LETTERS),
    "Inter-SemiBold": (INTER / "Inter-SemiBold.otf", LETTERS),
    "DejaVuSans": (DEJAVU / "DejaVuSans.ttf", None),
}


def cut(path: Path, letters: list[int] | None) -> TTFont:
    """Keep ``letters`` (None: all) of a font, without layout features and hints."""
    options = subset.Options(layout_features=[], hinting=False, name_IDs=[0, 1, 2, 4, 5, 6, 13, 14])
    options.notdef_outline = True
    font = TTFont(path)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=letters if letters is not None else list(font.getBestCmap()))
    cutter.subset(font)
    return font


def with_quadratic_outlines(font: TTFont) -> TTFont:
    """Turn CFF outlines into TrueType ones, which every PDF reader embeds the same way."""
    order, source = font.getGlyphOrder(), font.getGlyphSet()
    glyphs = {}
    for name in order:
        pen = TTGlyphPen(source)
        source[name].draw(Cu2QuPen(pen, 1.0, reverse_direction=True))
        glyphs[name] = pen.glyph()
    font["loca"], font["glyf"] = newTable("loca"), newTable("glyf")
    font["glyf"].glyphOrder, font["glyf"].glyphs = order, glyphs
    maxp = font["maxp"] = newTable("maxp")
    maxp.tableVersion, maxp.numGlyphs = 0x00010000, len(order)
    zero = "maxZones maxTwilightPoints maxStorage maxFunctionDefs maxInstructionDefs maxStackElements"
    zero += " maxSizeOfInstructions maxComponentElements"
    for field in zero.split():
        setattr(maxp, field, 0)
    maxp.maxZones = 1
    font["post"].formatType, font["post"].extraNames, font["post"].mapping = 2.0, [], {}
    font["post"].glyphOrder = order
    del font["CFF "]
    if "VORG" in font:
        del font["VORG"]
    font.sfntVersion = "\000\001\000\000"
    return font


def widths(font: TTFont) -> dict[str, Any]:
    """Advance widths per code point in thousandths of the font size."""
    scale, metrics = 1000 / font["head"].unitsPerEm, font["hmtx"]
    return {str(c): round(metrics[g][0] * scale) for c, g in sorted(font.getBestCmap().items())}


def main() -> None:
    """Write every font file and ``widths.json``."""
    table = {}
    for name, (path, letters) in SOURCES.items():
        font = cut(path, letters)
        if "CFF " in font:
            font = with_quadratic_outlines(font)
        font["head"].created = font["head"].modified = 3_786_912_000
        font.recalcTimestamp = False
        font.save(HERE / f"{name}.ttf")
        table[name] = widths(TTFont(HERE / f"{name}.ttf"))
    text = json.dumps(table, separators=(",", ":"))
    (HERE / "widths.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
