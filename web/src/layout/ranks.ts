/** Layers of a scope: every forward segment leads to a later one. */

import { BORDER, type Problem } from "./types";

/** Rank of every item; ports stand before 0 and after the last. */
export function ranksOf(problem: Problem): number[] {
  const count = problem.items.length;
  const out: number[][] = Array.from({ length: count }, () => []);
  const into: number[][] = Array.from({ length: count }, () => []);
  const entered = new Array<boolean>(count).fill(false);
  for (const { tail, head, back } of problem.segments) {
    if (tail === BORDER && head !== BORDER) entered[head] = true;
    if (tail === BORDER || head === BORDER || tail === head) continue;
    const [a, b] = back ? [head, tail] : [tail, head];
    out[a]!.push(b);
    into[b]!.push(a);
  }
  const order = topological(out, into);
  const rank = new Array<number>(count).fill(0);
  for (const item of order) for (const next of out[item]!) rank[next] = Math.max(rank[next]!, rank[item]! + 1);
  for (const item of [...order].reverse()) {
    const room = Math.min(...out[item]!.map((next) => rank[next]! - 1));
    const free = into[item]!.length + (entered[item] ? 1 : 0) < Math.max(1, out[item]!.length);
    if (Number.isFinite(room) && room > rank[item]! && free) rank[item] = room;
  }
  return rank;
}

/** Items in an order in which sources come first; what stands in a circle follows its number. */
function topological(out: number[][], into: number[][]): number[] {
  const waiting = into.map((list) => list.length);
  const done = new Array<boolean>(out.length).fill(false);
  const order: number[] = [];
  const ready = waiting.flatMap((number, item) => (number === 0 ? [item] : []));
  let next = 0;
  while (order.length < out.length) {
    let item = ready.shift();
    if (item === undefined) {
      while (done[next]) next++;
      item = next;
    }
    if (done[item]) continue;
    done[item] = true;
    order.push(item);
    const kept = out[item]!.filter((target) => !done[target]);
    out[item] = kept;
    for (const target of kept) if (--waiting[target]! === 0) ready.push(target);
  }
  return order;
}
