/** Small pages made by hand. */

import { Page, type GraphData, type PageData, type ViewData } from "../src/data";

export interface Made {
  /** Parent of every item: units first, then groups. */
  parents: number[];
  units: number;
  wires: [number, number][];
  focus?: number[];
  direction?: ViewData["direction"];
}

export function page({ parents, units, wires, focus = [], direction = "topdown" }: Made): Page {
  const strings = parents.map((_, item) => (item < units ? `op_${item}` : `group ${item}`));
  const empty = strings.push("") - 1;
  const facts = Object.fromEntries(
    ["label", "type", "shape", "kind", "module", "code", "state"].map((name) => [name, parents.map((_, k) => (name === "label" ? k : empty))]),
  );
  const numbers = Object.fromEntries(["passes", "bytes", "time", "flops", "params", "saved"].map((name) => [name, parents.map(() => 1)]));
  const graph: GraphData = {
    units: Array.from({ length: units }, (_, k) => k), parents, kinds: [], counts: wires.map(() => 1), dashed: [],
    sources: wires.map(([source]) => source), targets: wires.map(([, target]) => target),
  };
  const view: ViewData = {
    name: "overview", question: empty, graph: 0, rows: 0, looks: 1, sizes: [], heads: 1, labels: 1, caption: [], legend: null,
    top: [], metric: empty, direction, fontSize: null, focus, open: [], first: null,
  };
  const data = {
    version: 1, title: empty, header: [], view: "overview", theme: null, views: [view], graphs: [graph],
    facts: { ...facts, ...numbers }, columns: [parents.map((_, k) => k), [...parents, ...wires].map(() => empty)],
    rows: parents.map((_, k) => [0, k]), looks: [], themes: {}, strings,
  };
  return new Page(data as unknown as PageData);
}

/** Numbers that look random and are always the same. */
export function random(seed: number): () => number {
  let state = seed * 2654435761 + 1;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}
