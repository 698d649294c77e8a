/** What the open groups of a graph show: nodes, boxes, and the lines between them. */

import type { Graph, Page, ViewData } from "./data";

export interface VisibleEdge {
  source: number;
  target: number;
  count: number;
  head: string;
  label: string;
  back: boolean;
  dashed: boolean;
  /** Numbers of the wires that it stands for. */
  wires: number[];
}

export interface Visible {
  /** Nodes in order, with the box around each (-1: none). */
  nodes: number[];
  boxes: number[];
  around: Map<number, number>;
  stubs: Set<number>;
  edges: VisibleEdge[];
  /** The visible item that stands for each unit (-1: none). */
  itemOf: Int32Array;
}

export function visible(page: Page, view: ViewData, open: ReadonlySet<number>): Visible {
  const graph = page.graphs[view.graph]!;
  const found: Visible = {
    nodes: [],
    boxes: [],
    around: new Map(),
    stubs: new Set(),
    edges: [],
    itemOf: new Int32Array(graph.units).fill(-1),
  };
  walk(graph, found, open, new Set(view.focus));
  found.edges = edges(page, view, graph, found);
  dropLooseStubs(found);
  return found;
}

function walk(graph: Graph, found: Visible, open: ReadonlySet<number>, focus: ReadonlySet<number>): void {
  const aroundFocus = new Set([...focus].flatMap((item) => graph.above(item)));
  const visit = (items: number[], box: number, inside: boolean): void => {
    for (const item of items) {
      const insideNow = inside || focus.has(item);
      if (graph.isGroup(item) && insideNow && (open.has(item) || focus.has(item))) {
        found.boxes.push(item);
        found.around.set(item, box);
        visit(graph.children[item]!, item, true);
      } else if (aroundFocus.has(item)) {
        visit(graph.children[item]!, -1, false);
      } else {
        found.nodes.push(item);
        found.around.set(item, box);
        for (const unit of graph.unitsIn(item)) found.itemOf[unit] = item;
        if (!insideNow) found.stubs.add(item);
      }
    }
  };
  visit(graph.roots, -1, focus.size === 0);
}

function edges(page: Page, view: ViewData, graph: Graph, found: Visible): VisibleEdge[] {
  const { sources, targets, counts } = graph.data;
  const heads = page.column(view.heads);
  const labels = page.column(view.labels);
  const gathered = new Map<number, VisibleEdge>();
  for (let wire = 0; wire < sources.length; wire++) {
    const source = found.itemOf[sources[wire]!]!;
    const target = found.itemOf[targets[wire]!]!;
    const isInner = source === target && (graph.isGroup(source) || sources[wire] !== targets[wire]);
    if (source < 0 || target < 0 || isInner || (found.stubs.has(source) && found.stubs.has(target))) continue;
    const key = source * graph.items + target;
    const edge = gathered.get(key);
    if (edge) edge.wires.push(wire);
    else gathered.set(key, fresh(graph, found, source, target, wire));
  }
  for (const edge of gathered.values()) {
    const text = (column: number[]) => joined(edge.wires.map((wire) => page.text(column[wire]!)));
    edge.head = graph.isGroup(edge.target) ? "" : text(heads);
    edge.label = text(labels);
    edge.count = edge.wires.length > 1 ? new Set(edge.wires.map((w) => sources[w])).size : counts[edge.wires[0]!]!;
    edge.dashed ||= edge.wires.every((wire) => graph.dashed.has(wire));
  }
  return [...gathered.values()];
}

function fresh(graph: Graph, found: Visible, source: number, target: number, wire: number): VisibleEdge {
  const back = graph.first[source]! >= graph.first[target]!;
  const dashed = found.stubs.has(source) || found.stubs.has(target);
  return { source, target, count: 1, head: "", label: "", back, dashed, wires: [wire] };
}

function joined(texts: string[]): string {
  const found = [...new Set(texts.filter(Boolean))];
  return found.slice(0, 3).join(", ") + (found.length > 3 ? ` +${found.length - 3}` : "");
}

function dropLooseStubs(found: Visible): void {
  const joinedTo = new Set(found.edges.flatMap((edge) => [edge.source, edge.target]));
  found.nodes = found.nodes.filter((item) => !found.stubs.has(item) || joinedTo.has(item));
}
