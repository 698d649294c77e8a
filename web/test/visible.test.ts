import { expect, test } from "vitest";
import { visible } from "../src/visible";
import { page, type Made } from "./pages";

/** in(0) -> [6: a(1) -> [7: b(2) -> c(3)]] -> d(4) -> out(5), and a line past both boxes. */
const NESTED: Made = {
  units: 6,
  parents: [-1, 6, 7, 7, -1, -1, -1, 6],
  wires: [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [0, 4]],
};

function seen(made: Made, open: number[]) {
  const made_ = page(made);
  return visible(made_, made_.data.views[0]!, new Set(open));
}

test("closed groups stand for what is inside", () => {
  const { nodes, boxes, edges } = seen(NESTED, []);
  expect(nodes).toEqual([0, 6, 4, 5]);
  expect(boxes).toEqual([]);
  expect(edges.map(({ source, target }) => [source, target])).toEqual([[0, 6], [6, 4], [4, 5], [0, 4]]);
});

test("open groups show their items inside of them", () => {
  const { nodes, boxes, around } = seen(NESTED, [6, 7]);
  expect(nodes).toEqual([0, 1, 2, 3, 4, 5]);
  expect(boxes).toEqual([6, 7]);
  expect([around.get(2), around.get(7), around.get(0)]).toEqual([7, 6, -1]);
});

test("an open group inside of a closed one stays unseen", () => {
  expect(seen(NESTED, [7]).boxes).toEqual([]);
});

test("each wire belongs to one line, or lies inside a closed group", () => {
  for (const open of [[], [6], [6, 7]]) {
    const { edges, itemOf } = seen(NESTED, open);
    const drawn = edges.flatMap(({ wires }) => wires).sort();
    const inner = NESTED.wires.flatMap(([a, b], k) => (itemOf[a] === itemOf[b] ? [k] : []));
    expect([...drawn, ...inner].sort()).toEqual([0, 1, 2, 3, 4, 5]);
  }
});

test("a focus shows its inside, and neighbours as stubs", () => {
  const { nodes, stubs, boxes, edges } = seen({ ...NESTED, focus: [6] }, []);
  expect(boxes).toEqual([6]);
  expect(nodes).toEqual([0, 1, 7, 4]);
  expect([...stubs].filter((item) => nodes.includes(item))).toEqual([0, 4]);
  expect(edges.every(({ source, target }) => !(stubs.has(source) && stubs.has(target)))).toBe(true);
});

test("lines against the order of execution are back lines", () => {
  const { edges } = seen({ units: 3, parents: [-1, -1, -1], wires: [[0, 1], [1, 2], [2, 1], [1, 1]] }, []);
  expect(edges.map(({ back }) => back)).toEqual([false, false, true, true]);
});
