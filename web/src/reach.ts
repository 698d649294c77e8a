/** The path of a tensor: all that it is made from, and all that is made from it. */

import type { Graph } from "./data";

/** Lists of neighbours in one array: those of unit `u` are `ends[start[u]]` to `ends[start[u + 1] - 1]`. */
interface Neighbours {
  start: Int32Array;
  ends: Int32Array;
}

export class Reach {
  private readonly parents: Neighbours;
  private readonly children: Neighbours;

  constructor(graph: Graph) {
    const { sources, targets } = graph.data;
    this.children = neighbours(graph.units, sources, targets);
    this.parents = neighbours(graph.units, targets, sources);
  }

  /** The units before or after some units, with those themselves. */
  before(units: Iterable<number>): Set<number> {
    return closure(this.parents, units);
  }

  after(units: Iterable<number>): Set<number> {
    return closure(this.children, units);
  }

  parentsOf(unit: number): number[] {
    return list(this.parents, unit);
  }

  childrenOf(unit: number): number[] {
    return list(this.children, unit);
  }
}

function neighbours(units: number, from: number[], to: number[]): Neighbours {
  const start = new Int32Array(units + 1);
  for (const unit of from) start[unit + 1]!++;
  for (let unit = 0; unit < units; unit++) start[unit + 1]! += start[unit]!;
  const next = start.slice();
  const ends = new Int32Array(from.length);
  from.forEach((unit, k) => {
    ends[next[unit]!++] = to[k]!;
  });
  return { start, ends };
}

function list({ start, ends }: Neighbours, unit: number): number[] {
  return [...new Set(ends.subarray(start[unit]!, start[unit + 1]!))];
}

function closure(next: Neighbours, units: Iterable<number>): Set<number> {
  const found = new Set(units);
  const stack = [...found];
  while (stack.length) {
    const unit = stack.pop()!;
    for (let k = next.start[unit]!; k < next.start[unit + 1]!; k++) {
      const end = next.ends[k]!;
      if (!found.has(end)) {
        found.add(end);
        stack.push(end);
      }
    }
  }
  return found;
}
