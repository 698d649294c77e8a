/** Widths of text, and node sizes from them; the numbers are those of the static pictures. */

import type { Direction, Page, RowKind, Theme, ViewData } from "./data";

export const FAMILY = "Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";
export const LINE = 1.32;
export const ASCENT = 0.73;
const PAD_X = 10;
const PAD_Y = 6;
const MIN_WIDTH = 56;
const MAX_TEXT = 420;
const TITLE_SHARE = 0.93;

/** Width of a text in ems. */
export type Measure = (text: string, bold: boolean) => number;

export function canvasMeasure(): Measure {
  const context = document.createElement("canvas").getContext("2d")!;
  const widths = new Map<string, number>();
  return (text, bold) => {
    const key = (bold ? "b" : "n") + text;
    let wide = widths.get(key);
    if (wide === undefined) {
      context.font = `${bold ? 600 : 400} 100px ${FAMILY}`;
      wide = context.measureText(text).width / 100;
      widths.set(key, wide);
    }
    return wide;
  };
}

export interface Line {
  text: string;
  size: number;
  bold: boolean;
  muted: boolean;
  width: number;
}

export interface Sized {
  lines: Line[];
  width: number;
  height: number;
  /** Room that text beside the node needs. */
  beside: number;
}

export class Sizer {
  private readonly sizes: Map<number, [number, number]>;
  private readonly scale: number;

  constructor(
    private readonly page: Page,
    private readonly view: ViewData,
    private readonly theme: Theme,
    private readonly measure: Measure,
  ) {
    this.sizes = new Map(view.sizes.map(([item, width, height]) => [item, [width, height]]));
    this.scale = view.fontSize ? view.fontSize / theme.rows.title.size : 1;
  }

  line(kind: RowKind, text: string, share = 1): Line {
    const style = this.theme.rows[kind];
    const size = Math.round(style.size * this.scale * share * 100) / 100;
    const shown = this.shorten(text, size, MAX_TEXT * this.scale, style.bold);
    return { text: shown, size, bold: style.bold, muted: style.muted, width: this.measure(shown, style.bold) * size };
  }

  shorten(text: string, size: number, room: number, bold: boolean): string {
    if (this.measure(text, bold) * size <= room) return text;
    let keep = Math.min(text.length, Math.ceil((text.length * room) / (this.measure(text, bold) * size)) + 4);
    while (keep > 2) {
      keep--;
      const cut = `${text.slice(0, (keep + 1) >> 1)}…${text.slice(text.length - (keep >> 1))}`;
      if (this.measure(cut, bold) * size <= room) return cut;
    }
    return "…";
  }

  node(item: number): Sized {
    const lines = this.page.rows(this.view, item).map(([kind, text]) => this.line(kind, text));
    const wide = Math.max(0, ...lines.map((line) => line.width));
    const high = lines.reduce((sum, line) => sum + line.size * LINE, 0);
    const fixed = this.sizes.get(item);
    if (fixed) {
      const fits = wide + 6 <= fixed[0] && high + 4 <= fixed[1];
      return { lines, width: fixed[0], height: fixed[1], beside: fits ? 0 : wide + 8 };
    }
    return { lines, width: even(Math.max(wide + 2 * PAD_X, MIN_WIDTH)), height: even(high + 2 * PAD_Y), beside: 0 };
  }

  title(item: number): Line {
    return this.line("title", this.page.title(this.view, item), TITLE_SHARE);
  }
}

function even(value: number): number {
  return 2 * Math.ceil(value / 2);
}

/** Whether the flow of a direction runs across the screen. */
export function isFlat(direction: Direction): boolean {
  return direction === "leftright";
}
