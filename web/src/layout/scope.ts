/** One scope: order and places by dagre, lines by our own rules so that none runs through a node. */

import { Graph, layout } from "@dagrejs/dagre";
import { ranksOf } from "./ranks";
import { BORDER, type Point, type Problem, type Segment, type Solution } from "./types";
import { wrapRows, type Row, type Stop } from "./wrap";

const NODE_GAP = 22;
const EDGE_GAP = 12;
const RANK_GAP = 30;
const PORT_LEAD = 14;
const LOOP_ROOM = 20;

interface Placed {
  x: number[];
  y: number[];
  entryX: number[];
  exitX: number[];
  bends: Point[][];
}

export function solve(problem: Problem): Solution {
  const placed = place(problem);
  const rows = rowsOf(problem, placed);
  const stops = problem.segments.map((segment, k) => stopsOf(problem, placed, rows, segment, k));
  return wrapRows(problem, { ...placed, rows, stops });
}

function place(problem: Problem): Placed {
  const graph = new Graph({ multigraph: true });
  const ranks = ranksOf(problem);
  const last = Math.max(-1, ...ranks) + 1;
  graph.setGraph({ nodesep: NODE_GAP, edgesep: EDGE_GAP, ranksep: RANK_GAP, ranker: rankBy(ranks, last)  });
  graph.setDefaultEdgeLabel(() => ({}));
  problem.items.forEach((item, k) => {
    const side = problem.loops.includes(k) ? LOOP_ROOM * 2 : 0;
    graph.setNode(`i${k}`, { width: item.width + side, height: item.height });
  });
  for (let port = 0; port < problem.entries; port++) graph.setNode(`e${port}`, { width: 2, height: 0 });
  for (let port = 0; port < problem.exits; port++) graph.setNode(`x${port}`, { width: 2, height: 0 });
  problem.segments.forEach((segment, k) => {
    const [tail, head] = names(segment);
    if (!segment.back && tail !== head) graph.setEdge(tail, head, {}, String(k));
  });
  layout(graph);
  return read(problem, graph);
}

function names(segment: Segment): [string, string] {
  return [
    segment.tail === BORDER ? `e${segment.tailPort}` : `i${segment.tail}`,
    segment.head === BORDER ? `x${segment.headPort}` : `i${segment.head}`,
  ];
}

/** Ranks for dagre, which doubles them to make room between layers. */
function rankBy(ranks: number[], last: number): (graph: Graph) => void {
  return (graph) => {
    for (const name of graph.nodes()) {
      const number = Number(name.slice(1));
      const rank = name[0] === "i" ? ranks[number]! + 1 : name[0] === "e" ? 0 : last + 1;
      const node = graph.node(name) as unknown as { rank: number } | undefined;
      if (node) node.rank = 2 * rank;
    }
  };
}

function read(problem: Problem, graph: Graph): Placed {
  const node = (name: string) => graph.node(name) as unknown as { x: number; y: number };
  const at = (prefix: string, count: number) => Array.from({ length: count }, (_, k) => node(`${prefix}${k}`));
  const items = at("i", problem.items.length);
  const bends = problem.segments.map((segment, k): Point[] => {
    const [tail, head] = names(segment);
    if (segment.back || tail === head) return [];
    const edge = graph.edge({ v: tail, w: head, name: String(k) }) as unknown as { points: { x: number; y: number }[] };
    return edge.points.slice(1, -1).map(({ x, y }): Point => [x, y]);
  });
  return {
    x: items.map(({ x }) => x),
    y: items.map(({ y }) => y),
    entryX: at("e", problem.entries).map(({ x }) => x),
    exitX: at("x", problem.exits).map(({ x }) => x),
    bends,
  };
}

/** The layers from the first to the last, with the items on each. */
function rowsOf(problem: Problem, placed: Placed): Row[] {
  const byY = new Map<number, number[]>();
  placed.y.forEach((y, k) => {
    const key = Math.round(y);
    byY.set(key, [...(byY.get(key) ?? []), k]);
  });
  const rows = [...byY.entries()].sort(([a], [b]) => a - b);
  return rows.map(([y, items]) => {
    const half = Math.max(...items.map((k) => problem.items[k]!.height)) / 2;
    return { y, top: y - half, bottom: y + half, items };
  });
}

/** Where a line passes: leaving, straight through each layer between, arriving. */
function stopsOf(problem: Problem, placed: Placed, rows: Row[], segment: Segment, number: number): Stop[] {
  const rowOf = (item: number) => rows.findIndex((row) => row.items.includes(item));
  const between = placed.bends[number]!.flatMap(([x, y]): Stop[] => {
    const row = rows.findIndex((each) => Math.abs(each.y - y) < 2);
    return row < 0 ? [] : [{ x, row, from: rows[row]!.top, to: rows[row]!.bottom }];
  });
  const start = end(problem, placed, segment, "tail");
  const finish = end(problem, placed, segment, "head");
  const tailRow = segment.tail === BORDER ? -1 : rowOf(segment.tail);
  const headRow = segment.head === BORDER ? rows.length : rowOf(segment.head);
  const before = (rows[0]?.top ?? 0) - PORT_LEAD;
  const after = (rows[rows.length - 1]?.bottom ?? 0) + PORT_LEAD;
  const leave = rows[tailRow] ? { from: start[1], to: rows[tailRow]!.bottom } : { from: before, to: before };
  const arrive = rows[headRow] ? { from: rows[headRow]!.top, to: finish[1] } : { from: after, to: after };
  return [{ x: start[0], row: tailRow, ...leave }, ...between, { x: finish[0], row: headRow, ...arrive }];
}

/** The point at which a line leaves or enters an item. */
function end(problem: Problem, placed: Placed, segment: Segment, which: "tail" | "head"): Point {
  const number = segment[which];
  const port = which === "tail" ? segment.tailPort : segment.headPort;
  if (number === BORDER) return [(which === "tail" ? placed.entryX : placed.exitX)[port]!, 0];
  const item = problem.items[number]!;
  const y = placed.y[number]! + ((which === "head" ? -1 : 1) * item.height) / 2;
  const ports = which === "tail" ? item.exits : item.entries;
  const left = placed.x[number]! - item.width / 2;
  if (ports) return [left + (ports[port] ?? item.width / 2), y];
  return [left + item.width * (which === "head" ? slot(problem, placed, segment) : 0.5), y];
}

/** Several lines into a node stand beside each other, in the order of where they come from. */
function slot(problem: Problem, placed: Placed, segment: Segment): number {
  const same = problem.segments
    .map((each, k) => ({ each, k }))
    .filter(({ each }) => each.head === segment.head && each.tail !== each.head);
  if (same.length < 2) return 0.5;
  const from = ({ each, k }: { each: Segment; k: number }): number => {
    if (each.back) return Infinity;
    const bends = placed.bends[k]!;
    const near = bends[bends.length - 2];
    return near?.[0] ?? (each.tail === BORDER ? placed.entryX[each.tailPort]! : placed.x[each.tail]!);
  };
  const sorted = same.map((entry) => ({ ...entry, x: from(entry) })).sort((a, b) => (a.x === b.x ? a.k - b.k : a.x - b.x));
  const place = sorted.findIndex(({ each }) => each === segment);
  const span = Math.min(0.7, 0.22 * (same.length - 1));
  return 0.5 - span / 2 + (span * place) / (same.length - 1);
}
