import { expect, test } from "vitest";
import { Composer, type Layout, type Rect } from "../src/layout/compose";
import type { Point } from "../src/layout/types";
import { visible, type Visible } from "../src/visible";
import { page, random, type Made } from "./pages";

/** A random graph with nested groups of neighbours; every unit reads some of the units before it. */
function made(seed: number, units: number, back = 0): Made {
  const next = random(seed);
  const parents: number[] = Array.from({ length: units }, () => -1);
  const wires: [number, number][] = [];
  for (let unit = 1; unit < units; unit++) {
    wires.push([Math.max(0, unit - 1 - Math.floor(next() * 3)), unit]);
    if (next() < 0.4) wires.push([Math.floor(next() * unit), unit]);
  }
  for (let k = 0; k < back; k++) wires.push([units - 1 - k, Math.floor(next() * (units - 2))]);
  let group = units;
  for (let start = 1; start + 3 < units; start += 6) {
    parents.push(-1);
    for (let unit = start; unit < start + 4; unit++) parents[unit] = group;
    parents.push(group);
    parents[start + 1] = parents[start + 2] = group + 1;
    group += 2;
  }
  return { units, parents, wires };
}

function laid(from: Made, open: (group: number) => boolean, direction: "topdown" | "bottomup" | "leftright" = "topdown"): [Visible, Layout] {
  const whole = page({ ...from, direction });
  const graph = whole.graphs[0]!;
  const groups = Array.from({ length: graph.items - graph.units }, (_, k) => graph.units + k).filter(open);
  const seen = visible(whole, whole.data.views[0]!, new Set(groups));
  const sizes = {
    node: (item: number) => ({ width: 60 + 10 * (item % 5), height: 24 + 6 * (item % 3), beside: 0 }),
    title: () => ({ width: 90, height: 14 }),
    order: (a: number, b: number) => graph.first[a]! - graph.first[b]! || a - b,
  };
  return [seen, new Composer().lay(seen, sizes, direction)];
}

const SEEDS = Array.from({ length: 6 }, (_, k) => k + 1);
const overlap = (a: Rect, b: Rect, slack = 0.5) =>
  a.x + slack < b.x + b.width && b.x + slack < a.x + a.width && a.y + slack < b.y + b.height && b.y + slack < a.y + a.height;
const inside = (a: Rect, b: Rect) => a.x >= b.x && a.y >= b.y && a.x + a.width <= b.x + b.width + 0.1 && a.y + a.height <= b.y + b.height + 0.1;

function points(curve: Point[]): Point[] {
  const found: Point[] = [];
  for (let k = 0; k + 3 < curve.length; k += 3) {
    const [a, b, c, d] = curve.slice(k, k + 4) as [Point, Point, Point, Point];
    for (let t = 0; t <= 1; t += 0.05) {
      const s = 1 - t;
      const at = (i: 0 | 1) => s ** 3 * a[i] + 3 * s * s * t * b[i] + 3 * s * t * t * c[i] + t ** 3 * d[i];
      found.push([at(0), at(1)]);
    }
  }
  return found;
}

function onBorder([x, y]: Point, rect: Rect): boolean {
  const near = (a: number, b: number) => Math.abs(a - b) < 0.2;
  const isAcross = x > rect.x - 0.2 && x < rect.x + rect.width + 0.2;
  const isAlong = y > rect.y - 0.2 && y < rect.y + rect.height + 0.2;
  return (isAcross && (near(y, rect.y) || near(y, rect.y + rect.height))) || (isAlong && (near(x, rect.x) || near(x, rect.x + rect.width)));
}

test.each(SEEDS)("boxes nest and nothing overlaps, seed %i", (seed) => {
  for (const open of [() => true, () => false, (group: number) => group % 4 < 2]) {
    const [seen, { nodes, boxes }] = laid(made(seed, 40), open);
    const rect = (item: number) => (nodes.get(item) ?? boxes.get(item))!;
    const every = [...seen.nodes, ...seen.boxes];
    for (const a of every) {
      const around = seen.around.get(a)!;
      if (around >= 0) expect(inside(rect(a), rect(around))).toBe(true);
      for (const b of every) if (a < b && seen.around.get(b) === around) expect(overlap(rect(a), rect(b))).toBe(false);
    }
  }
});

test.each(SEEDS)("lines run whole from producer to consumer, seed %i", (seed) => {
  for (const direction of ["topdown", "bottomup", "leftright"] as const) {
    const [seen, { nodes, curves }] = laid(made(seed, 40, 3), () => true, direction);
    seen.edges.forEach(({ source, target }, k) => {
      const curve = curves[k]!;
      expect((curve.length - 1) % 3).toBe(0);
      expect(onBorder(curve[0]!, nodes.get(source)!)).toBe(true);
      expect(onBorder(curve[curve.length - 1]!, nodes.get(target)!)).toBe(true);
    });
  }
});

test.each(SEEDS)("no line runs through another node, seed %i", (seed) => {
  const [seen, { nodes, curves }] = laid(made(seed, 40), () => true);
  seen.edges.forEach(({ source, target }, k) => {
    const way = points(curves[k]!);
    for (const [item, rect] of nodes) {
      if (item === source || item === target) continue;
      const inner = { x: rect.x + 1, y: rect.y + 1, width: rect.width - 2, height: rect.height - 2 };
      const hit = way.find(([x, y]) => x > inner.x && x < inner.x + inner.width && y > inner.y && y < inner.y + inner.height);
      expect(hit, `line ${source} to ${target} through ${item}`).toBeUndefined();
    }
  });
});

test("a long chain is no strip", () => {
  const units = 48;
  const chain: Made = { units, parents: Array.from({ length: units }, () => -1), wires: Array.from({ length: units - 1 }, (_, k) => [k, k + 1]) };
  const [, { width, height }] = laid(chain, () => true);
  expect(height / width).toBeLessThan(2);
  expect(width / height).toBeLessThan(4);
});

test("the same state gives the same picture", () => {
  const [, first] = laid(made(3, 40), () => true);
  const [, second] = laid(made(3, 40), () => true);
  expect(second).toEqual(first);
});

test("a line to itself leaves and enters its node", () => {
  const [, { nodes, curves }] = laid({ units: 2, parents: [-1, -1], wires: [[0, 1], [1, 1]] }, () => true);
  expect(onBorder(curves[1]![0]!, nodes.get(1)!)).toBe(true);
  expect(onBorder(curves[1]![curves[1]!.length - 1]!, nodes.get(1)!)).toBe(true);
});
