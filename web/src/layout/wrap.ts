/** Layers become a drawing: in one column, or in several when it would be a tall strip. */

import { BORDER, type Point, type Problem, type Solution } from "./types";

export interface Row {
  y: number;
  top: number;
  bottom: number;
  items: number[];
}

/** A line passes a layer straight from one height to another. */
export interface Stop {
  x: number;
  row: number;
  from: number;
  to: number;
}

export interface Laid {
  x: number[];
  y: number[];
  entryX: number[];
  exitX: number[];
  rows: Row[];
  stops: Stop[][];
}

const TALL = 2.4;
const ASPECT = 1.5;
const GUTTER = 30;
const LANE = 7;
const TURN = 12;
const SIDE = 12;

interface Column {
  left: number;
  right: number;
  first: number;
  last: number;
  dx: number;
  dy: number;
}

export function wrapRows(problem: Problem, laid: Laid): Solution {
  const [left, right] = extent(problem, laid);
  const columns = columnsOf(problem, laid, left, right);
  const of = (row: number) => columns.findIndex((column) => row <= column.last);
  const at = (row: number) => columns[row < 0 ? 0 : Math.max(0, of(Math.min(row, laid.rows.length - 1)))]!;
  const rowOf = new Map(laid.rows.flatMap((row, k) => row.items.map((item) => [item, k] as const)));
  const corners = problem.items.map((item, k): Point => {
    const { dx, dy } = at(rowOf.get(k)!);
    return [laid.x[k]! - item.width / 2 + dx, laid.y[k]! - item.height / 2 + dy];
  });
  const lanes = new Lanes(columns, bottomOf(laid, columns), laid.rows[0]?.top ?? 0);
  const curves = laid.stops.map((stops, k) => {
    const { back, tail, head } = problem.segments[k]!;
    if (tail === head && tail !== BORDER) return loop(problem, corners[tail]!, tail);
    return back ? backwards(stops.map((stop) => ({ ...stop, x: stop.x - left })), right - left, lanes) : curveOf(stops, columns, at, lanes);
  });
  const lastColumn = columns[columns.length - 1]!;
  const height = lanes.bottom + (columns.length > 1 ? TURN : 0);
  const top = lanes.top;
  if (columns.length > 1) leadOut(problem, curves, height);
  return shifted({
    width: lastColumn.right + lastColumn.dx + lanes.side(),
    height,
    corners,
    entryX: laid.entryX.map((x) => x + columns[0]!.dx),
    exitX: laid.exitX.map((x) => x + lastColumn.dx),
    curves,
  }, top);
}

function leadOut(problem: Problem, curves: Point[][], height: number): void {
  problem.segments.forEach((segment, k) => {
    const curve = curves[k]!;
    const tip = curve[curve.length - 1];
    if (segment.head === BORDER && tip) curve.push(...straight(tip, [tip[0], height]));
  });
}

/** Move everything down so that nothing lies above 0. */
function shifted(solution: Solution, top: number): Solution {
  const dy = -top;
  const move = ([x, y]: Point): Point => [x, y + dy];
  return {
    ...solution,
    height: solution.height + dy,
    corners: solution.corners.map(move),
    curves: solution.curves.map((curve) => curve.map(move)),
  };
}

function extent(problem: Problem, laid: Laid): [number, number] {
  const lefts = laid.x.map((x, k) => x - problem.items[k]!.width / 2 - (problem.loops.includes(k) ? 20 : 0));
  const rights = laid.x.map((x, k) => x + problem.items[k]!.width / 2 + (problem.loops.includes(k) ? 20 : 0));
  const lines = laid.stops.flatMap((stops) => stops.map(({ x }) => x));
  const all = [...laid.entryX, ...laid.exitX, ...lines];
  return [Math.min(...lefts, ...all), Math.max(...rights, ...all)];
}

function columnsOf(problem: Problem, laid: Laid, left: number, right: number): Column[] {
  const { rows } = laid;
  const width = right - left;
  const last = rows.length - 1;
  const height = last < 0 ? 0 : rows[last]!.bottom - rows[0]!.top;
  const isOneWay = !problem.segments.some(({ back }) => back);
  const cuts = isOneWay && height > problem.wrapFrom && height > TALL * width ? cutsOf(laid, width, height) : [];
  const ends = [...cuts, last];
  let first = 0;
  let x = -left;
  return ends.map((end, k) => {
    const lines = k < ends.length - 1 ? crossing(laid, end).length : 0;
    const rise = k === 0 ? 0 : rows[0]!.top - rows[first]!.top;
    const column = { left, right, first, last: end, dx: x, dy: rise };
    first = end + 1;
    x += width + GUTTER + LANE * lines;
    return column;
  });
}

/** Cut after which rows: evenly, and where few lines cross. */
function cutsOf(laid: Laid, width: number, height: number): number[] {
  const count = Math.max(2, Math.round(Math.sqrt((height * ASPECT) / (width + GUTTER))));
  const { rows } = laid;
  const start = rows[0]!.top;
  const cuts: number[] = [];
  for (let k = 1; k < count; k++) {
    const goal = start + (height * k) / count;
    let best = -1;
    let least = Infinity;
    for (let row = (cuts[cuts.length - 1] ?? -1) + 1; row < rows.length - 1; row++) {
      const cost = Math.abs(rows[row]!.bottom - goal) + 60 * crossing(laid, row).length;
      if (cost < least) [best, least] = [row, cost];
    }
    if (best >= 0) cuts.push(best);
  }
  return cuts;
}

function crossing(laid: Laid, row: number): number[] {
  return laid.stops.flatMap((stops, k) => {
    const ends = [stops[0]?.row ?? 0, stops[stops.length - 1]?.row ?? 0];
    return Math.min(...ends) <= row && Math.max(...ends) > row ? [k] : [];
  });
}

function bottomOf(laid: Laid, columns: Column[]): number {
  return Math.max(0, ...columns.map(({ last, dy }) => (laid.rows[last]?.bottom ?? 0) + dy));
}

/** Hands out lanes in the gutters between columns, and keeps account of how far lines reach. */
class Lanes {
  private readonly used: number[];
  private backs = 0;
  bottom: number;
  top: number;

  constructor(columns: Column[], private readonly floor: number, roof: number) {
    this.used = columns.map(() => 0);
    this.bottom = floor;
    this.top = roof;
  }

  /** The next lane at the right side, for lines against the flow. */
  aside(): number {
    return SIDE + LANE * this.backs++;
  }

  /** Room that those take. */
  side(): number {
    return this.backs ? SIDE + LANE * this.backs : 0;
  }

  next(gutter: number): number {
    return this.used[gutter]!++;
  }

  reach(y: number): void {
    this.bottom = Math.max(this.bottom, y);
    this.top = Math.min(this.top, y);
  }

  below(lane: number): number {
    const y = this.floor + TURN + LANE * lane;
    this.reach(y);
    return y;
  }
}

function curveOf(stops: Stop[], columns: Column[], at: (row: number) => Column, lanes: Lanes): Point[] {
  const points: Point[] = [];
  let column: Column | undefined;
  for (const stop of stops) {
    const now = at(stop.row);
    const [from, to]: [Point, Point] = [
      [stop.x + now.dx, stop.from + now.dy],
      [stop.x + now.dx, stop.to + now.dy],
    ];
    lanes.reach(from[1]);
    lanes.reach(to[1]);
    const before = points[points.length - 1];
    if (!before) points.push(from);
    else if (column && column !== now) points.push(...around(before, from, columns, column, now, lanes));
    else points.push(...bend(before, from));
    points.push(...straight(from, to));
    column = now;
  }
  return points;
}

/** Against the flow: out below, up at the right side, and in from above. */
function backwards(stops: Stop[], right: number, lanes: Lanes): Point[] {
  const [first, last] = [stops[0]!, stops[stops.length - 1]!];
  const x = right + lanes.aside();
  const [out, over] = [first.to + TURN, last.from - TURN];
  lanes.reach(out);
  lanes.reach(over);
  return rounded([[first.x, first.from], [first.x, out], [x, out], [x, over], [last.x, over], [last.x, last.to]]);
}

/** From an item to itself: a bow at its right side. */
function loop(problem: Problem, [x, y]: Point, number: number): Point[] {
  const { width, height } = problem.items[number]!;
  const [right, reach] = [x + width, x + width + 22];
  return [[right, y + height * 0.72], [reach, y + height * 0.78], [reach, y + height * 0.22], [right, y + height * 0.28]];
}

/** From the foot of one column through the gutter to the head of another. */
function around(start: Point, end: Point, columns: Column[], from: Column, to: Column, lanes: Lanes): Point[] {
  const ahead = columns.indexOf(to) > columns.indexOf(from);
  const gutter = columns[ahead ? columns.indexOf(to) - 1 : columns.indexOf(to)]!;
  const lane = lanes.next(columns.indexOf(gutter));
  const x = gutter.right + gutter.dx + GUTTER / 2 + LANE * lane;
  const out = ahead && columns.indexOf(to) - columns.indexOf(from) > 1
    ? lanes.below(lane)
    : start[1] + (ahead ? TURN + (LANE / 2) * lane : -TURN);
  const over = end[1] + (ahead ? -TURN - (LANE / 2) * lane : TURN);
  lanes.reach(out);
  lanes.reach(over);
  return rounded([start, [start[0], out], [x, out], [x, over], [end[0], over], end]).slice(1);
}

export function straight(a: Point, b: Point): Point[] {
  if (a[0] === b[0] && a[1] === b[1]) return [];
  const part = (t: number): Point => [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t];
  return [part(1 / 3), part(2 / 3), b];
}

function bend(a: Point, b: Point): Point[] {
  const middle = (a[1] + b[1]) / 2;
  return [[a[0], middle], [b[0], middle], b];
}

/** A line of straight parts with round corners, as Bezier pieces. */
export function rounded(corners: Point[], radius = 7): Point[] {
  const points: Point[] = [corners[0]!];
  for (let k = 1; k < corners.length - 1; k++) {
    const [a, b, c] = [corners[k - 1]!, corners[k]!, corners[k + 1]!];
    const reach = Math.min(radius, distance(a, b) / 2, distance(b, c) / 2);
    const [enter, leave] = [toward(b, a, reach), toward(b, c, reach)];
    points.push(...straight(points[points.length - 1]!, enter), b, b, leave);
  }
  points.push(...straight(points[points.length - 1]!, corners[corners.length - 1]!));
  return points;
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}

function toward(from: Point, to: Point, reach: number): Point {
  const span = distance(from, to) || 1;
  return [from[0] + ((to[0] - from[0]) * reach) / span, from[1] + ((to[1] - from[1]) * reach) / span];
}
