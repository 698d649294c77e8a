/** The picture on the screen: elements for what the camera sees, and their short animations. */

import { svg } from "./dom";
import type { Camera } from "./hash";
import type { Rect } from "./layout/compose";
import type { Scene } from "./scene";
import { boxFill, boxTitle, frame, line, motifs, nodeParts, number } from "./shapes";

const MANY = 700;
/** Smaller than this no text can be read, and in large pictures none is drawn. */
const FAR = 0.3;
const MARGIN = 300;
const MILLISECONDS = 200;

interface Kept {
  element: SVGGElement;
  detailed: boolean;
}

export class Stage {
  readonly element: SVGSVGElement;
  private readonly world = svg("g", { class: "world" });
  private readonly layers = {
    frames: svg("g", { class: "frames", "aria-hidden": "true" }),
    edges: svg("g", { class: "edges", "aria-hidden": "true" }),
    items: svg("g", { class: "items" }),
    texts: svg("g", { class: "texts", "aria-hidden": "true" }),
  };
  private readonly definitions = svg("g");
  private readonly frames = new Map<number, Kept>();
  private readonly edges = new Map<number, Kept>();
  private readonly items = new Map<number, Kept>();
  private readonly texts = new Map<number, Kept>();
  private camera: Camera = { x: 0, y: 0, scale: 1 };
  private lit: { items: ReadonlySet<number>; edges: ReadonlySet<number> } | null = null;
  private hits: ReadonlySet<number> = new Set();
  private selected = -1;
  private active = -1;
  private pending = 0;
  scene: Scene | null = null;

  constructor() {
    this.element = svg(
      "svg", { class: "graph", role: "group", "aria-label": "Graph" },
      this.definitions, this.world,
    );
    this.world.append(...Object.values(this.layers));
  }

  // -- what is shown -----------------------------------------------------------------------------

  show(scene: Scene, animate: boolean): void {
    const before = animate ? this.places() : null;
    this.scene = scene;
    for (const kept of [this.frames, this.edges, this.items, this.texts]) clear(kept);
    this.definitions.replaceChildren(motifs(scene.theme));
    if (!scene.layout.nodes.has(this.active) && !scene.layout.boxes.has(this.active)) this.active = -1;
    this.update();
    if (before) this.animate(before);
  }

  private places(): Map<number, Rect> {
    return new Map([...(this.scene?.layout.nodes ?? []), ...(this.scene?.layout.boxes ?? [])]);
  }

  move(camera: Camera): void {
    this.camera = camera;
    this.world.setAttribute("transform", `translate(${camera.x} ${camera.y}) scale(${camera.scale})`);
    if (this.isLarge() && !this.pending) {
      this.pending = requestAnimationFrame(() => {
        this.pending = 0;
        this.update();
      });
    }
  }

  private isLarge(): boolean {
    return !!this.scene && this.scene.seen.nodes.length + this.scene.seen.edges.length > MANY;
  }

  /** The part of the picture that the camera sees; all of it if it is small. */
  private window(): Rect | null {
    if (!this.isLarge()) return null;
    const { x, y, scale } = this.camera;
    const { width, height } = this.element.getBoundingClientRect();
    return {
      x: (-x - MARGIN) / scale, y: (-y - MARGIN) / scale,
      width: (width + 2 * MARGIN) / scale, height: (height + 2 * MARGIN) / scale,
    };
  }

  private update(): void {
    const scene = this.scene;
    if (!scene) return;
    const window = this.window();
    const detailed = !window || this.camera.scale >= FAR;
    const sees = (rect: Rect) => !window || overlaps(rect, window);
    const { boxes, nodes, curves } = scene.layout;
    const frames = scene.seen.boxes.filter((box) => sees(boxes.get(box)!));
    sync(this.frames, this.layers.frames, frames, detailed, (box) => this.frameElement(scene, box));
    const edges = curves.flatMap((curve, k) => (sees(around(curve)) ? [k] : []));
    sync(this.edges, this.layers.edges, edges, detailed, (k) => this.edgeElement(scene, k));
    const order = [...scene.seen.boxes, ...scene.seen.nodes]
      .filter((item) => sees((boxes.get(item) ?? nodes.get(item))!))
      .sort((a, b) => scene.graph.first[a]! - scene.graph.first[b]! || scene.graph.depth[a]! - scene.graph.depth[b]!);
    sync(this.items, this.layers.items, order, detailed, (item) => this.itemElement(scene, item, detailed));
    const texts = detailed ? scene.texts.flatMap(({ x, y }, k) => (sees({ x, y, width: 60, height: 1 }) ? [k] : [])) : [];
    sync(this.texts, this.layers.texts, texts, true, (k) => this.textElement(scene, k));
    this.dress();
  }

  // -- elements ----------------------------------------------------------------------------------

  private frameElement(scene: Scene, box: number): SVGGElement {
    const rect = scene.layout.boxes.get(box)!;
    return svg("g", { transform: at(rect), "data-box": box }, frame(rect, scene.theme, this.depthOf(scene, box)));
  }

  private depthOf(scene: Scene, box: number): number {
    let depth = 0;
    for (let up = scene.seen.around.get(box)!; up >= 0; up = scene.seen.around.get(up)!) depth++;
    return depth;
  }

  private edgeElement(scene: Scene, k: number): SVGGElement {
    const edge = scene.edge(k);
    const color = edge.back ? scene.theme.back_edge : scene.theme.edge;
    const parts = line(scene.layout.curves[k]!, { color, width: scene.theme.edge_width, dashed: edge.dashed });
    return svg("g", { class: "edge", "data-edge": k }, ...parts);
  }

  private textElement(scene: Scene, k: number): SVGGElement {
    const { text, x, y, anchor, edge } = scene.texts[k]!;
    const style = { x: number(x), y: number(y), "font-size": scene.theme.label_size, "text-anchor": anchor };
    return svg("g", { "data-text": edge }, svg("text", { ...style, fill: scene.theme.ink, class: "note" }, text));
  }

  private itemElement(scene: Scene, item: number, detailed: boolean): SVGGElement {
    const box = scene.layout.boxes.get(item);
    return box ? this.titleElement(scene, item) : this.nodeElement(scene, item, detailed);
  }

  private titleElement(scene: Scene, box: number): SVGGElement {
    const [x, y] = scene.layout.titles.get(box)!;
    const parts = boxTitle(scene.title(box), scene.theme, boxFill(scene.theme, this.depthOf(scene, box)));
    return svg(
      "g",
      {
        class: "item title", transform: `translate(${number(x)} ${number(y)})`, "data-item": box, role: "button",
        tabindex: -1, "aria-expanded": "true", "aria-label": scene.name(box),
      },
      ...parts,
    );
  }

  private nodeElement(scene: Scene, item: number, detailed: boolean): SVGGElement {
    const rect = scene.layout.nodes.get(item)!;
    const isGroup = scene.graph.isGroup(item);
    const isStub = scene.seen.stubs.has(item);
    const parts = nodeParts({
      rect, sized: scene.sized(item), paint: scene.paint(item), look: scene.look(item), theme: scene.theme,
      isGroup: isGroup && !isStub, detailed, flat: scene.flat,
    });
    return svg(
      "g",
      {
        class: isGroup ? "item group" : "item", transform: at(rect), "data-item": item, role: "button", tabindex: -1,
        "aria-expanded": isGroup && !isStub ? "false" : undefined, "aria-label": scene.name(item),
      },
      ...parts,
    );
  }

  // -- states ------------------------------------------------------------------------------------

  light(lit: { items: ReadonlySet<number>; edges: ReadonlySet<number> } | null): void {
    this.lit = lit;
    this.dress();
  }

  mark(hits: ReadonlySet<number>): void {
    this.hits = hits;
    this.dress();
  }

  select(item: number): void {
    this.selected = item;
    this.dress();
  }

  /** Make an item the one that the keyboard stands on. */
  activate(item: number, focus: boolean): void {
    this.active = item;
    this.dress();
    if (focus) this.items.get(item)?.element.focus({ preventScroll: true });
  }

  private dress(): void {
    const { lit } = this;
    this.element.classList.toggle("tracing", !!lit);
    const first = this.items.keys().next().value;
    const active = this.items.has(this.active) ? this.active : first;
    for (const [item, { element }] of this.items) {
      element.classList.toggle("lit", !!lit && lit.items.has(item));
      element.classList.toggle("hit", this.hits.has(item));
      element.classList.toggle("selected", item === this.selected);
      element.setAttribute("tabindex", item === active ? "0" : "-1");
    }
    for (const [k, { element }] of this.edges) element.classList.toggle("lit", !!lit && lit.edges.has(k));
    for (const [k, { element }] of this.texts) {
      element.classList.toggle("lit", !!lit && lit.edges.has(this.scene!.texts[k]!.edge));
    }
  }

  // -- animation ---------------------------------------------------------------------------------

  private animate(before: Map<number, Rect>): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches || this.isLarge()) return;
    const options = { duration: MILLISECONDS, easing: "ease-out" };
    const after = this.places();
    for (const [item, { element }] of [...this.items, ...this.frames]) {
      const [from, to] = [before.get(item), after.get(item)!];
      if (!from) element.animate([{ opacity: 0 }, { opacity: 1 }], options);
      else if (this.frames.get(item)?.element !== element && !element.classList.contains("title")) {
        const shift = `translate(${from.x}px, ${from.y}px)`;
        element.animate([{ transform: shift }, { transform: `translate(${to.x}px, ${to.y}px)` }], options);
      }
    }
    const fade = { duration: MILLISECONDS * 1.3, easing: "ease-in" };
    for (const { element } of [...this.edges.values(), ...this.texts.values()]) {
      element.animate([{ opacity: 0 }, { opacity: 1 }], fade);
    }
  }
}

function clear(kept: Map<number, Kept>): void {
  for (const { element } of kept.values()) element.remove();
  kept.clear();
}

/** Keep elements for exactly the wanted numbers, in their order. */
function sync(
  kept: Map<number, Kept>, layer: SVGGElement, wanted: number[], detailed: boolean, make: (number: number) => SVGGElement,
): void {
  const set = new Set(wanted);
  for (const [key, { element, detailed: was }] of kept) {
    if (!set.has(key) || was !== detailed) {
      element.remove();
      kept.delete(key);
    }
  }
  let after: ChildNode | null = layer.firstChild;
  for (const key of wanted) {
    const old = kept.get(key);
    if (old) {
      if (old.element === after) after = after.nextSibling;
      else layer.insertBefore(old.element, after);
      continue;
    }
    const element = make(key);
    kept.set(key, { element, detailed });
    layer.insertBefore(element, after);
  }
}

function at({ x, y }: Rect): string {
  return `translate(${number(x)} ${number(y)})`;
}

function around(points: [number, number][]): Rect {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  }
  return { x: left, y: top, width: right - left, height: bottom - top };
}

function overlaps(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
