/**
 * Compound layout: every open box is laid out by itself and then stands as one rectangle in the box
 * around it.  Equal scopes are laid out once.
 */

import type { Direction } from "../data";
import type { Visible } from "../visible";
import { cut, TOP, type Cut, type ScopeGraph } from "./cut";
import { solve } from "./scope";
import type { Item, Point, Problem, Solution } from "./types";
import { straight } from "./wrap";

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  width: number;
  height: number;
  nodes: Map<number, Rect>;
  boxes: Map<number, Rect>;
  titles: Map<number, Point>;
  /** A Bezier curve for each visible edge. */
  curves: Point[][];
}

export interface Sizes {
  node: (item: number) => { width: number; height: number; beside: number };
  title: (item: number) => { width: number; height: number };
  order: (a: number, b: number) => number;
}

const PAD = 12;
const TITLE_X = 10;
const WRAP_PAGE = 600;
const WRAP_BOX = 900;
const NEVER = 1e9;
const TITLE_Y = 4;

/** Room between a frame and its content, in flow coordinates. */
interface Frame {
  width: number;
  height: number;
  left: number;
  start: number;
}

export class Composer {
  private readonly solved = new Map<string, Solution>();

  lay(seen: Visible, sizes: Sizes, direction: Direction): Layout {
    return new Composition(seen, sizes, direction, this.solved).layout();
  }
}

class Composition {
  private readonly cut: Cut;
  private readonly solutions = new Map<number, Solution>();
  private readonly frames = new Map<number, Frame>();
  private readonly corners = new Map<number, Point>();
  private readonly flat: boolean;

  constructor(
    private readonly seen: Visible,
    private readonly sizes: Sizes,
    private readonly direction: Direction,
    private readonly solved: Map<string, Solution>,
  ) {
    this.flat = direction === "leftright";
    this.cut = cut(seen, sizes.order);
  }

  layout(): Layout {
    for (const box of [...this.seen.boxes].reverse()) this.frame(box);
    this.solve(TOP);
    this.place(TOP, [0, 0]);
    for (const box of this.seen.boxes) {
      const frame = this.frames.get(box)!;
      const [x, y] = this.corners.get(box)!;
      this.place(box, [x + frame.left, y + frame.start]);
    }
    return this.turned();
  }

  private frame(box: number): void {
    const solution = this.solve(box);
    const title = this.sizes.title(box);
    const high = title.height + TITLE_Y + PAD;
    const wide = title.width + 2 * TITLE_X;
    const [left, start, end] = this.flat ? [high, PAD, PAD] : [PAD, this.titleAbove() ? high : PAD, this.titleAbove() ? PAD : high];
    const width = Math.max(left + solution.width + PAD, this.flat ? 0 : wide);
    const height = Math.max(start + solution.height + end, this.flat ? wide : 0);
    const spare = this.flat ? 0 : (width - left - solution.width - PAD) / 2;
    const spareAlong = this.flat ? (height - start - solution.height - end) / 2 : 0;
    this.frames.set(box, { width, height, left: left + spare, start: start + spareAlong });
  }

  private titleAbove(): boolean {
    return this.direction !== "bottomup";
  }

  private solve(scope: number): Solution {
    const problem = this.problem(scope);
    const key = JSON.stringify(problem);
    let solution = this.solved.get(key);
    if (!solution) {
      solution = solve(problem);
      this.solved.set(key, solution);
    }
    this.solutions.set(scope, solution);
    return solution;
  }

  private problem(scope: number): Problem {
    const graph = this.cut.scopes.get(scope)!;
    const loops = graph.segments.flatMap(({ tail, head }) => (tail === head && tail >= 0 ? [tail] : []));
    return {
      items: graph.members.map((member) => this.item(member)),
      segments: graph.segments,
      entries: graph.entries.size,
      exits: graph.exits.size,
      loops,
      wrapFrom: this.flat ? NEVER : scope === TOP ? WRAP_PAGE : WRAP_BOX,
    };
  }

  private item(member: number): Item {
    const frame = this.frames.get(member);
    if (frame) return { width: frame.width, height: frame.height, ...this.ports(member, frame) };
    const { width, height, beside } = this.sizes.node(member);
    return this.flat ? { width: height + (beside ? 40 : 0), height: width } : { width: width + 2 * beside, height };
  }

  private ports(member: number, frame: Frame): { entries: number[]; exits: number[] } {
    const solution = this.solutions.get(member)!;
    const moved = (x: number) => Math.round((x + frame.left) * 10) / 10;
    return { entries: solution.entryX.map(moved), exits: solution.exitX.map(moved) };
  }

  private place(scope: number, [x, y]: Point): void {
    const solution = this.solutions.get(scope)!;
    const graph = this.cut.scopes.get(scope)!;
    graph.members.forEach((member, k) => {
      const corner = solution.corners[k]!;
      this.corners.set(member, [x + corner[0], y + corner[1]]);
    });
  }

  // -- curves ------------------------------------------------------------------------------------

  private curve(edge: number): Point[] {
    const points: Point[] = [];
    for (const [scope, segment] of this.cut.parts[edge]!) {
      const piece = this.piece(scope, segment);
      const before = points[points.length - 1];
      if (before) points.push(...straight(before, piece[0]!), ...piece.slice(1));
      else points.push(...piece);
    }
    return points;
  }

  private piece(scope: number, number: number): Point[] {
    const graph: ScopeGraph = this.cut.scopes.get(scope)!;
    const frame = this.frames.get(scope);
    const corner = this.corners.get(scope);
    const [dx, dy] = corner && frame ? [corner[0] + frame.left, corner[1] + frame.start] : [0, 0];
    const points = this.solutions.get(scope)!.curves[number]!.map(([x, y]): Point => [x + dx, y + dy]);
    const segment = graph.segments[number]!;
    if (corner && frame && segment.tail < 0) {
      const start: Point = [points[0]![0], corner[1]];
      points.unshift(start, ...straight(start, points[0]!).slice(0, -1));
    }
    if (corner && frame && segment.head < 0) {
      const tip = points[points.length - 1]!;
      points.push(...straight(tip, [tip[0], corner[1] + frame.height]));
    }
    return points;
  }

  // -- from flow to page -------------------------------------------------------------------------

  private turned(): Layout {
    const top = this.solutions.get(TOP)!;
    const nodes = new Map(this.seen.nodes.map((item) => [item, this.nodeRect(item, top.height)]));
    const boxes = new Map(this.seen.boxes.map((box) => {
      const { width, height } = this.frames.get(box)!;
      return [box, this.rect(this.corners.get(box)!, width, height, top.height)];
    }));
    const titles = new Map([...boxes].map(([box, rect]): [number, Point] => [box, this.titlePoint(box, rect)]));
    const curves = this.seen.edges.map((_, k) => this.curve(k).map((point) => this.point(point, top.height)));
    const [width, height] = this.flat ? [top.height, top.width] : [top.width, top.height];
    return { width, height, nodes, boxes, titles, curves };
  }

  /** Beside the lines that enter, where there is room. */
  private titlePoint(box: number, rect: Rect): Point {
    const wide = this.sizes.title(box).width;
    const y = rect.y + TITLE_Y;
    if (this.flat) return [rect.x + TITLE_X, y];
    const frame = this.frames.get(box)!;
    const ports = (this.titleAbove() ? this.solutions.get(box)!.entryX : this.solutions.get(box)!.exitX)
      .map((x) => rect.x + x + frame.left);
    const clear = (x: number) => ports.every((port) => port < x - 4 || port > x + wide + 4);
    const right = rect.x + rect.width - TITLE_X - wide;
    const behind = Math.max(...ports, rect.x) + 8;
    return [[rect.x + TITLE_X, behind, right].find((x) => x <= right && clear(x)) ?? rect.x + TITLE_X, y];
  }

  private nodeRect(item: number, total: number): Rect {
    const { width, height, beside } = this.sizes.node(item);
    const [x, y] = this.corners.get(item)!;
    if (this.flat) return this.rect([x, y], height, width, total);
    return this.rect([x + beside, y], width, height, total);
  }

  private rect([x, y]: Point, width: number, height: number, total: number): Rect {
    if (this.flat) return { x: y, y: x, width: height, height: width };
    return { x, y: this.titleAbove() ? y : total - y - height, width, height };
  }

  private point([x, y]: Point, total: number): Point {
    if (this.flat) return [y, x];
    return [x, this.titleAbove() ? y : total - y];
  }
}
