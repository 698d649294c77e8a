/** Layout in flow coordinates: x across the flow, y along it. */

export type Point = [number, number];

export const BORDER = -1;

/** A member of a scope: a node, or a box with the x of its ports. */
export interface Item {
  width: number;
  height: number;
  entries?: number[];
  exits?: number[];
}

/** A part of a line inside one scope; an end at `BORDER` is a port of the scope itself. */
export interface Segment {
  tail: number;
  tailPort: number;
  head: number;
  headPort: number;
  back: boolean;
}

export interface Problem {
  items: Item[];
  segments: Segment[];
  entries: number;
  exits: number;
  /** Lines that start and end at the same item take room at its side. */
  loops: number[];
  /** Height from which a strip is drawn in columns. */
  wrapFrom: number;
}

/** Corners of the items, x of the ports, and a Bezier curve for each segment. */
export interface Solution {
  width: number;
  height: number;
  corners: Point[];
  entryX: number[];
  exitX: number[];
  curves: Point[][];
}
