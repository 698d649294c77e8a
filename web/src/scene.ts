/** Everything that is drawn for one state of the page: what is visible, and where. */

import type { Direction, FirstLayout, Graph, Page, Theme, ViewData } from "./data";
import { opening } from "./camera";
import { edgeTexts, type EdgeText } from "./edgetext";
import type { Camera } from "./hash";
import { Composer, type Layout, type Rect } from "./layout/compose";
import type { Point } from "./layout/types";
import { LINE, Sizer, type Line, type Measure, type Sized } from "./text";
import { paint, type Paint } from "./theme";
import { visible, type Visible, type VisibleEdge } from "./visible";

const TITLE_ROOM = 22;

export class Scene {
  readonly graph: Graph;
  readonly seen: Visible;
  readonly layout: Layout;
  readonly texts: EdgeText[];
  readonly area: Rect;
  private readonly sizer: Sizer;
  private readonly known = new Map<number, Sized>();

  constructor(
    readonly page: Page,
    readonly view: ViewData,
    readonly theme: Theme,
    open: ReadonlySet<number>,
    measure: Measure,
    composer: Composer,
  ) {
    this.graph = page.graphs[view.graph]!;
    this.seen = visible(page, view, open);
    this.sizer = new Sizer(page, view, theme, measure);
    const first = view.first && isFirst(view, open) ? ready(view.first, this.seen) : null;
    this.layout = first ?? composer.lay(this.seen, this.sizes(), this.direction);
    this.texts = first
      ? readyTexts(view.first!, this.seen)
      : edgeTexts(this.seen.edges, this.layout.curves, theme.label_size, (text) => measure(text, false), this.flat);
    this.area = extent(this.layout, (item) => this.sized(item).beside);
  }

  get direction(): Direction {
    return this.view.direction;
  }

  get flat(): boolean {
    return this.direction === "leftright";
  }

  private sizes() {
    return {
      node: (item: number) => this.sized(item),
      title: (item: number) => {
        const line = this.sizer.title(item);
        return { width: line.width + TITLE_ROOM, height: line.size * LINE };
      },
      order: (a: number, b: number) => this.graph.first[a]! - this.graph.first[b]! || a - b,
    };
  }

  sized(item: number): Sized {
    let sized = this.known.get(item);
    if (!sized) {
      sized = this.sizer.node(item);
      this.known.set(item, sized);
    }
    return sized;
  }

  title(item: number): Line {
    return this.sizer.title(item);
  }

  paint(item: number): Paint {
    return paint(this.theme, this.look(item));
  }

  look(item: number) {
    const look = this.page.look(this.view, item);
    if (!this.seen.stubs.has(item)) return look;
    return ["stub", "stub", 1, 1, look[4], null] as typeof look;
  }

  /** What an item is called by those who cannot see it. */
  name(item: number): string {
    const lines = this.layout.boxes.has(item) ? [this.title(item)] : this.sized(item).lines;
    return lines.map(({ text }) => text).join(" ");
  }

  /** Where a reader begins. */
  opening(width: number, height: number): Camera {
    const first = this.seen.nodes.find((item) => !this.seen.stubs.has(item));
    return opening(this.area, (first !== undefined && this.layout.nodes.get(first)) || this.area, width, height);
  }

  edge(number: number): VisibleEdge {
    return this.seen.edges[number]!;
  }
}

/** Whether exactly those groups are open that a view opens with. */
export function isFirst(view: ViewData, open: ReadonlySet<number>): boolean {
  return view.open.length === open.size && view.open.every((group) => open.has(group));
}

function ready(first: FirstLayout, seen: Visible): Layout | null {
  const nodes = new Map<number, Rect>();
  const boxes = new Map<number, Rect>();
  const titles = new Map<number, Point>();
  for (let k = 0; k < first.nodes.length; k += 5) {
    const [item, x, y, width, height] = first.nodes.slice(k, k + 5) as [number, number, number, number, number];
    nodes.set(item, { x, y, width, height });
  }
  for (let k = 0; k < first.boxes.length; k += 7) {
    const [item, x, y, width, height, tx, ty] = first.boxes.slice(k, k + 7) as [number, number, number, number, number, number, number];
    boxes.set(item, { x, y, width, height });
    titles.set(item, [tx, ty]);
  }
  const byEnds = new Map(first.edges.map(([source, target, ...flat]) => [`${source} ${target}`, pairs(flat)]));
  const curves = seen.edges.map(({ source, target }) => byEnds.get(`${source} ${target}`));
  const isWhole = seen.nodes.every((item) => nodes.has(item)) && seen.boxes.every((box) => boxes.has(box));
  if (!isWhole || curves.some((curve) => !curve)) return null;
  return { width: 0, height: 0, nodes, boxes, titles, curves: curves as Point[][] };
}

function pairs(flat: number[]): Point[] {
  return Array.from({ length: flat.length / 2 }, (_, k): Point => [flat[2 * k]!, flat[2 * k + 1]!]);
}

function readyTexts(first: FirstLayout, seen: Visible): EdgeText[] {
  const numbers = new Map(seen.edges.map(({ source, target }, k) => [`${source} ${target}`, k]));
  return first.texts.map(([edge, text, x, y, anchor]) => {
    const [source, target] = first.edges[edge]!;
    return { edge: numbers.get(`${source} ${target}`) ?? -1, text, x, y, anchor };
  });
}

function extent(layout: Layout, beside: (item: number) => number): Rect {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  const take = (x: number, y: number) => {
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
  };
  for (const [item, { x, y, width, height }] of layout.nodes) {
    take(x, y);
    take(x + width + beside(item), y + height);
  }
  for (const { x, y, width, height } of layout.boxes.values()) {
    take(x, y);
    take(x + width, y + height);
  }
  for (const curve of layout.curves) for (const [x, y] of curve) take(x, y);
  if (left === Infinity) return { x: 0, y: 0, width: 1, height: 1 };
  return { x: left, y: top, width: right - left, height: bottom - top };
}
