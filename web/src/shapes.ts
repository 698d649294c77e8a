/** Elements of the picture: nodes, frames, lines. */

import type { Look, Motif, Theme } from "./data";
import { svg } from "./dom";
import type { Rect } from "./layout/compose";
import type { Point } from "./layout/types";
import { ASCENT, LINE, type Line, type Sized } from "./text";
import type { Paint } from "./theme";

const DASH = "4 3";
const ARROW = [6, 2.4] as const;

export function number(value: number): string {
  return String(Math.round(value * 10) / 10);
}

// -- nodes ---------------------------------------------------------------------------------------

export interface NodeParts {
  rect: Rect;
  sized: Sized;
  paint: Paint;
  look: Look;
  theme: Theme;
  /** A closed group, which opens. */
  isGroup: boolean;
  detailed: boolean;
  flat: boolean;
}

/** The inside of a node's group, whose origin is its corner. */
export function nodeParts(parts: NodeParts): (SVGElement | string)[] {
  const { rect, paint, look, isGroup, detailed } = parts;
  const style = {
    fill: paint.fill,
    stroke: paint.stroke,
    "stroke-width": paint.width,
    "stroke-dasharray": paint.dashed ? DASH : undefined,
  };
  const found: (SVGElement | string)[] = [];
  if (isGroup) found.push(outline(look[4], rect, { ...style, transform: "translate(3 3)" }));
  found.push(outline(look[4], rect, { ...style, class: "face" }));
  if (look[5]) found.push(outline(look[4], rect, { fill: `url(#motif-${look[5]})`, stroke: "none" }));
  if (detailed) found.push(...texts(parts).flatMap((text) => [text, " "]));
  if (isGroup && detailed) found.push(chip(rect.width - 1, 1, paint.stroke, paint.fill, true));
  return found;
}

function outline(shape: string, { width, height }: Rect, style: Record<string, string | number | undefined>): SVGElement {
  if (shape === "ellipse") {
    return svg("ellipse", { cx: width / 2, cy: height / 2, rx: width / 2, ry: height / 2, ...style });
  }
  if (shape === "octagon") {
    const cut = Math.min(width, height) * 0.3;
    const points = [
      [cut, 0], [width - cut, 0], [width, cut], [width, height - cut],
      [width - cut, height], [cut, height], [0, height - cut], [0, cut],
    ];
    return svg("polygon", { points: points.map((point) => point.join()).join(" "), ...style });
  }
  return svg("rect", { width, height, rx: shape === "rounded" ? Math.min(5, height / 2) : 2, ...style });
}

function texts({ rect, sized, paint, theme, flat }: NodeParts): SVGElement[] {
  const high = sized.lines.reduce((sum, line) => sum + line.size * LINE, 0);
  const isInside = sized.beside === 0;
  const [x, middle] = isInside
    ? [rect.width / 2, rect.height / 2]
    : flat ? [0, rect.height + 4 + high / 2] : [rect.width + 5, rect.height / 2];
  const [ink, quiet] = isInside ? [paint.ink, paint.muted] : [theme.ink, theme.muted];
  let y = middle - high / 2;
  return sized.lines.map((line) => {
    const base = y + (line.size * LINE + ASCENT * line.size) / 2;
    y += line.size * LINE;
    return text(line, x, base, line.muted ? quiet : ink, isInside ? "middle" : "start");
  });
}

export function text(line: Line, x: number, y: number, fill: string, anchor: string): SVGElement {
  return svg(
    "text",
    {
      x: number(x), y: number(y), fill, "font-size": line.size,
      "font-weight": line.bold ? 600 : undefined,
      "text-anchor": anchor === "start" ? undefined : anchor,
    },
    line.text,
  );
}

/** A small sign that says whether something opens or closes. */
export function chip(x: number, y: number, stroke: string, fill: string, opens: boolean): SVGElement {
  const bars = opens ? "M-2.6 0H2.6M0 -2.6V2.6" : "M-2.6 0H2.6";
  return svg(
    "g",
    { class: "chip", transform: `translate(${number(x)} ${number(y)})` },
    svg("circle", { r: 5, fill, stroke, "stroke-width": 0.8 }),
    svg("path", { d: bars, stroke, "stroke-width": 1.2, fill: "none" }),
  );
}

// -- frames --------------------------------------------------------------------------------------

export function frame(rect: Rect, theme: Theme, depth: number): SVGElement {
  return svg("rect", {
    width: number(rect.width), height: number(rect.height), rx: 7,
    fill: boxFill(theme, depth), stroke: theme.box_stroke, "stroke-width": theme.box_width, class: "frame",
  });
}

export function boxFill(theme: Theme, depth: number): string {
  return theme.box_fills[Math.min(depth, theme.box_fills.length - 1)]!;
}

/** The title of an open box: a button that closes it. */
export function boxTitle(line: Line, theme: Theme, fill: string): SVGElement[] {
  const high = line.size * LINE;
  return [
    svg("rect", { x: -4, y: -1, width: number(line.width + 24), height: number(high + 2), rx: 4, fill, class: "face" }),
    chip(5, high / 2, theme.box_ink, fill, false),
    text(line, 14, (high + ASCENT * line.size) / 2, theme.box_ink, "start"),
  ];
}

// -- lines ---------------------------------------------------------------------------------------

export interface Stroke {
  color: string;
  width: number;
  dashed: boolean;
}

/** A line with its arrow head, over a wide unseen line that is easy to point at. */
export function line(curve: Point[], { color, width, dashed }: Stroke): SVGElement[] {
  const [tip, left, right] = arrowHead(curve, width);
  const base: Point = [(left[0] + right[0]) / 2, (left[1] + right[1]) / 2];
  const d = path([...curve.slice(0, -1), base]);
  const head = `M${[tip, left, right].map((point) => point.map(number).join(" ")).join("L")}Z`;
  return [
    svg("path", { d, class: "reach" }),
    svg("path", { d, class: "line", stroke: color, "stroke-width": width, "stroke-dasharray": dashed ? DASH : undefined }),
    svg("path", { d: head, class: "tip", fill: color }),
  ];
}

export function path(points: Point[]): string {
  const parts = [`M${points[0]!.map(number).join(" ")}`];
  for (let k = 1; k + 2 < points.length; k += 3) {
    parts.push(`C${points.slice(k, k + 3).map((point) => point.map(number).join(" ")).join(" ")}`);
  }
  return parts.join("");
}

/** Tip and base corners of the head at the end of a curve. */
export function arrowHead(curve: Point[], width: number): [Point, Point, Point] {
  const [x, y] = curve[curve.length - 1]!;
  const before = [...curve].reverse().find((point) => Math.abs(point[0] - x) + Math.abs(point[1] - y) > 0.5) ?? curve[0]!;
  const span = Math.hypot(x - before[0], y - before[1]) || 1;
  const [dx, dy] = [(x - before[0]) / span, (y - before[1]) / span];
  const grow = 0.8 + 0.2 * width;
  const [long, half] = [ARROW[0] * grow, ARROW[1] * grow];
  const base: Point = [x - dx * long, y - dy * long];
  return [[x, y], [base[0] - dy * half, base[1] + dx * half], [base[0] + dy * half, base[1] - dx * half]];
}

// -- motifs --------------------------------------------------------------------------------------

const PATTERNS: Record<Motif, string> = {
  diagonal: "M-1 1L1 -1M0 6L6 0M5 7L7 5",
  cross: "M0 6L6 0M0 0L6 6",
  dots: "M1.5 1.5h.01M4.5 4.5h.01",
  horizontal: "M0 3H6",
};

/** Patterns that a node's fill is covered with. */
export function motifs(theme: Theme): SVGElement {
  const patterns = (Object.keys(PATTERNS) as Motif[]).map((motif) =>
    svg(
      "pattern",
      { id: `motif-${motif}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      svg("path", {
        d: PATTERNS[motif], stroke: theme.ink, "stroke-width": motif === "dots" ? 1.6 : 0.7,
        "stroke-linecap": "round", "stroke-opacity": 0.3, fill: "none",
      }),
    ),
  );
  return svg("defs", {}, ...patterns);
}
