import { expect, test } from "vitest";
import { clamped, fitted, opening, READABLE, showing, zoomed } from "../src/camera";
import { Reach } from "../src/reach";
import { Search } from "../src/search";
import { contrast, inkOn, mutedOn } from "../src/theme";
import type { Theme } from "../src/data";
import { page } from "./pages";

const DIAMOND = page({ units: 5, parents: [-1, -1, 5, -1, -1, -1], wires: [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]] });

test("a path holds all that a tensor is made from, and all that is made from it", () => {
  const reach = new Reach(DIAMOND.graphs[0]!);
  expect([...reach.before([1])].sort()).toEqual([0, 1]);
  expect([...reach.after([1])].sort()).toEqual([1, 3, 4]);
  expect([...reach.before([4])].sort()).toEqual([0, 1, 2, 3, 4]);
  expect(reach.parentsOf(3)).toEqual([1, 2]);
});

test("search takes expressions, and anything else as it stands", () => {
  const search = new Search(DIAMOND, DIAMOND.data.views[0]!, DIAMOND.graphs[0]!);
  expect(search.find("^OP_[12]$")).toEqual({ items: [1, 2], plain: false });
  expect(search.find("group")).toEqual({ items: [5], plain: false });
  expect(search.find("op_(")).toEqual({ items: [], plain: true });
});

test("zooming keeps the point under the mouse", () => {
  const before = { x: 10, y: 20, scale: 1 };
  const after = zoomed(before, 2, 110, 220);
  expect((110 - after.x) / after.scale).toBeCloseTo((110 - before.x) / before.scale);
  expect((220 - after.y) / after.scale).toBeCloseTo((220 - before.y) / before.scale);
  expect(clamped(1e9)).toBeLessThan(10);
});

test("a page opens so that it can be read", () => {
  const small = { x: 0, y: 0, width: 400, height: 300 };
  expect(opening(small, small, 900, 700)).toEqual(fitted(small, 900, 700));
  const wide = { x: 0, y: 0, width: 90_000, height: 200 };
  const first = { x: 40_000, y: 0, width: 80, height: 30 };
  const camera = opening(wide, first, 900, 700);
  expect(camera.scale).toBe(READABLE);
  const x = first.x * camera.scale + camera.x;
  expect(x).toBeGreaterThan(0);
  expect(x).toBeLessThan(900);
});

test("what is shown lies on the screen", () => {
  const camera = showing({ x: 0, y: 0, scale: 1 }, { x: 2000, y: -500, width: 100, height: 40 }, 900, 700);
  expect(2000 * camera.scale + camera.x + 100).toBeLessThanOrEqual(900);
  expect(-500 * camera.scale + camera.y).toBeGreaterThanOrEqual(0);
});

test("ink can be read on every fill", () => {
  const theme = { inks: ["#1C1C1C", "#FFFFFF"] } as unknown as Theme;
  for (const fill of ["#98FB98", "#FF9999", "#777777", "#DE6029", "#8C651B", "#FFFFFF", "#000000"]) {
    const ink = inkOn(theme, fill);
    expect(contrast(ink, fill)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(mutedOn(ink, fill), fill)).toBeGreaterThanOrEqual(4.5);
  }
});
