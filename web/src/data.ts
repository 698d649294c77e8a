/** The data of a page as Python writes it: columns, and one table for every text. */

export interface Role {
  fill: string;
  stroke: string;
  ink: string;
  width: number;
  dashed: boolean;
}

export interface RowStyle {
  size: number;
  bold: boolean;
  muted: boolean;
}

export interface Theme {
  background: string;
  ink: string;
  muted: string;
  edge: string;
  back_edge: string;
  node_fill: string;
  node_stroke: string;
  box_fills: string[];
  box_stroke: string;
  box_ink: string;
  roles: Record<string, Role>;
  rows: Record<RowKind, RowStyle>;
  ramp: string[];
  inks: [string, string];
  edge_width: number;
  node_width: number;
  box_width: number;
  label_size: number;
}

export const ROW_KINDS = ["title", "shape", "detail", "note"] as const;
export type RowKind = (typeof ROW_KINDS)[number];
export type Direction = "topdown" | "bottomup" | "leftright";
export type Motif = "diagonal" | "cross" | "dots" | "horizontal";
/** Fill, stroke, width, dashes, shape, motif. */
export type Look = [string, string, number, number, string, Motif | null];

export interface Legend {
  entries: [string, string, string, number, Motif | null][];
  ramps: [string, string, string, string][];
}

export interface FirstLayout {
  nodes: number[];
  boxes: number[];
  edges: number[][];
  texts: [number, string, number, number, "start" | "middle" | "end"][];
}

export interface ViewData {
  name: string;
  question: number;
  graph: number;
  rows: number;
  looks: number;
  sizes: [number, number, number][];
  heads: number;
  labels: number;
  caption: number[];
  legend: Legend | null;
  top: [number, number, number][];
  metric: number;
  direction: Direction;
  fontSize: number | null;
  focus: number[];
  open: number[];
  first: FirstLayout | null;
}

export interface GraphData {
  units: number[];
  parents: number[];
  kinds: number[];
  sources: number[];
  targets: number[];
  counts: number[];
  dashed: number[];
}

export const TEXT_FACTS = ["label", "type", "shape", "kind", "module", "code", "state"] as const;
export const NUMBER_FACTS = ["passes", "bytes", "time", "flops", "params", "saved"] as const;
export type TextFact = (typeof TEXT_FACTS)[number];
export type NumberFact = (typeof NUMBER_FACTS)[number];

export interface PageData {
  version: number;
  title: number;
  header: number[];
  view: string;
  theme: string | null;
  views: ViewData[];
  graphs: GraphData[];
  facts: Record<TextFact, number[]> & Record<NumberFact, (number | null)[]>;
  columns: number[][];
  rows: number[][];
  looks: Look[];
  themes: Record<string, Theme>;
  strings: string[];
}

/** One graph: units come first in the numbering of items, then the groups around them. */
export class Graph {
  readonly items: number;
  readonly units: number;
  readonly children: number[][];
  readonly roots: number[] = [];
  /** First and last unit of each item. */
  readonly first: Int32Array;
  readonly size: Int32Array;
  readonly depth: Int32Array;
  readonly dashed: Set<number>;

  constructor(readonly data: GraphData) {
    this.items = data.parents.length;
    this.units = data.units.length;
    this.children = Array.from({ length: this.items }, () => []);
    this.first = new Int32Array(this.items).fill(this.units);
    this.size = new Int32Array(this.items);
    this.depth = new Int32Array(this.items);
    this.dashed = new Set(data.dashed);
    this.measure();
    const byFirst = (a: number, b: number) => this.first[a]! - this.first[b]!;
    for (let item = 0; item < this.items; item++) {
      (this.children[this.parent(item)] ?? this.roots).push(item);
    }
    for (const list of this.children) list.sort(byFirst);
    this.roots.sort(byFirst);
  }

  private measure(): void {
    for (let unit = 0; unit < this.units; unit++) {
      for (let item = unit; item >= 0; item = this.parent(item)) {
        if (unit < this.first[item]!) this.first[item] = unit;
        this.size[item]!++;
      }
    }
    for (let item = 0; item < this.items; item++) {
      for (let up = this.parent(item); up >= 0; up = this.parent(up)) this.depth[item]!++;
    }
  }

  parent(item: number): number {
    return this.data.parents[item] ?? -1;
  }

  isGroup(item: number): boolean {
    return item >= this.units;
  }

  /** The groups around an item, innermost first. */
  above(item: number): number[] {
    const found: number[] = [];
    for (let up = this.parent(item); up >= 0; up = this.parent(up)) found.push(up);
    return found;
  }

  /** Every unit inside of an item. */
  unitsIn(item: number): number[] {
    if (!this.isGroup(item)) return [item];
    const found: number[] = [];
    const stack = [item];
    while (stack.length) {
      const next = stack.pop()!;
      if (this.isGroup(next)) stack.push(...this.children[next]!);
      else found.push(next);
    }
    return found;
  }
}

/** The whole page, with its texts looked up. */
export class Page {
  readonly graphs: Graph[];

  constructor(readonly data: PageData) {
    this.graphs = data.graphs.map((graph) => new Graph(graph));
  }

  text(number: number): string {
    return this.data.strings[number] ?? "";
  }

  column(number: number): number[] {
    return this.data.columns[number] ?? [];
  }

  view(name: string): ViewData | undefined {
    return this.data.views.find((view) => view.name === name);
  }

  fact(graph: Graph, unit: number, name: TextFact): string {
    return this.text(this.data.facts[name][graph.data.units[unit]!]!);
  }

  number(graph: Graph, unit: number, name: NumberFact): number | null {
    return this.data.facts[name][graph.data.units[unit]!] ?? null;
  }

  /** Rows of an item in a view: kind and text of each. */
  rows(view: ViewData, item: number): [RowKind, string][] {
    const flat = this.data.rows[this.column(view.rows)[item]!] ?? [];
    const found: [RowKind, string][] = [];
    for (let k = 0; k < flat.length; k += 2) found.push([ROW_KINDS[flat[k]!]!, this.text(flat[k + 1]!)]);
    return found;
  }

  title(view: ViewData, item: number): string {
    return this.rows(view, item)[0]?.[1] ?? "";
  }

  look(view: ViewData, item: number): Look {
    return this.data.looks[this.column(view.looks)[item]!]!;
  }
}
