/** Edges cut at the borders that they cross: one part for every scope on the way. */

import type { Visible } from "../visible";
import { BORDER, type Segment } from "./types";

export const TOP = -1;

/** Members of one scope and the parts of lines in it; ports are numbered as they first appear. */
export interface ScopeGraph {
  members: number[];
  place: Map<number, number>;
  entries: Map<number, number>;
  exits: Map<number, number>;
  segments: Segment[];
  known: Map<string, number>;
}

/** For each edge, scope and segment of every part, from producer to consumer. */
export interface Cut {
  scopes: Map<number, ScopeGraph>;
  parts: [number, number][][];
}

export function cut(seen: Visible, order: (a: number, b: number) => number): Cut {
  const scopes = new Map<number, ScopeGraph>([[TOP, empty()]]);
  for (const box of seen.boxes) scopes.set(box, empty());
  for (const item of [...seen.nodes, ...seen.boxes]) scopes.get(seen.around.get(item)!)!.members.push(item);
  for (const scope of scopes.values()) {
    scope.members.sort(order);
    scope.members.forEach((member, k) => scope.place.set(member, k));
  }
  const parts = seen.edges.map((edge) => partsOf(scopes, seen, edge.source, edge.target, edge.back));
  return { scopes, parts };
}

function empty(): ScopeGraph {
  return { members: [], place: new Map(), entries: new Map(), exits: new Map(), segments: [], known: new Map() };
}

function way(seen: Visible, item: number): number[] {
  const found: number[] = [];
  for (let box = seen.around.get(item)!; box !== TOP; box = seen.around.get(box)!) found.push(box);
  return found;
}

function partsOf(
  scopes: Map<number, ScopeGraph>, seen: Visible, source: number, target: number, back: boolean,
): [number, number][] {
  const [up, down] = [way(seen, source), way(seen, target)];
  while (up.length && down.length && up[up.length - 1] === down[down.length - 1]) {
    up.pop();
    down.pop();
  }
  const key = source * 2 + (back ? 1 : 0);
  const parts: [number, number][] = [];
  let tail: [number, number] = [source, 0];
  for (const box of up) {
    const scope = scopes.get(box)!;
    const port = numbered(scope.exits, key);
    parts.push([box, add(scope, { ...tailOf(scope, tail), head: BORDER, headPort: port, back: false })]);
    tail = [box, port];
  }
  const meeting = seen.around.get(tail[0])!;
  for (const box of down.reverse()) {
    const outer = scopes.get(seen.around.get(box)!)!;
    const port = numbered(scopes.get(box)!.entries, key);
    const isMeeting = seen.around.get(box) === meeting;
    const head = { head: outer.place.get(box)!, headPort: port, back: back && isMeeting };
    parts.push([seen.around.get(box)!, add(outer, { ...tailOf(outer, tail), ...head })]);
    tail = [BORDER, port];
  }
  const scope = scopes.get(seen.around.get(target)!)!;
  const isMeeting = seen.around.get(target) === meeting;
  const head = { head: scope.place.get(target)!, headPort: 0, back: back && isMeeting };
  parts.push([seen.around.get(target)!, add(scope, { ...tailOf(scope, tail), ...head })]);
  return parts;
}

function tailOf(scope: ScopeGraph, [end, port]: [number, number]): { tail: number; tailPort: number } {
  return { tail: end === BORDER ? BORDER : scope.place.get(end)!, tailPort: port };
}

function numbered(ports: Map<number, number>, key: number): number {
  const port = ports.get(key) ?? ports.size;
  ports.set(key, port);
  return port;
}

/** Number of a segment, which equal parts of several edges share. */
function add(scope: ScopeGraph, segment: Segment): number {
  const key = [segment.tail, segment.tailPort, segment.head, segment.headPort, segment.back].join();
  const number = scope.known.get(key) ?? scope.segments.length;
  if (number === scope.segments.length) scope.segments.push(segment);
  scope.known.set(key, number);
  return number;
}
