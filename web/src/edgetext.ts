/** Short texts at lines: the argument at the head, and what the line carries at its middle. */

import type { Point } from "./layout/types";
import type { VisibleEdge } from "./visible";

export type Anchor = "start" | "middle" | "end";
export interface EdgeText {
  edge: number;
  text: string;
  x: number;
  y: number;
  anchor: Anchor;
}

interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Place texts beside lines, where they stand over no other text; what finds no room is left out. */
export function edgeTexts(
  edges: readonly VisibleEdge[], curves: readonly Point[][], size: number, width: (text: string) => number, flat: boolean,
): EdgeText[] {
  const taken: Area[] = [];
  const found: EdgeText[] = [];
  const add = (edge: number, text: string, [x, y]: Point): void => {
    const wide = width(text) * size;
    for (const lift of [0, size * 1.15, size * 2.3]) {
      const area = { left: x, right: x + wide, top: y - lift - size, bottom: y - lift };
      if (taken.some((other) => overlap(area, other))) continue;
      taken.push(area);
      found.push({ edge, text, x, y: y - lift, anchor: "start" });
      return;
    }
  };
  edges.forEach((edge, k) => {
    const curve = curves[k]!;
    const [x, y] = curve[curve.length - 1]!;
    if (edge.head) add(k, edge.head, flat ? [x - width(edge.head) * size - 9, y - 3] : [x + 4, y - 7]);
    const label = [edge.label, edge.count > 1 ? `×${edge.count}` : ""].filter(Boolean).join(" ");
    if (label) add(k, label, beside(middleOf(curve), 4));
  });
  return found;
}

function beside([x, y]: Point, gap: number): Point {
  return [x + gap, y + 3];
}

function middleOf(curve: Point[]): Point {
  const piece = 3 * Math.floor((curve.length - 1) / 6);
  const [a, b, c, d] = [curve[piece]!, curve[piece + 1]!, curve[piece + 2]!, curve[piece + 3]!];
  const at = (k: 0 | 1) => (a[k] + 3 * b[k] + 3 * c[k] + d[k]) / 8;
  return [at(0), at(1)];
}

function overlap(a: Area, b: Area): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
