/** The page: its state, and what each action does to it. */

import { Bar } from "./bar";
import { centred, fitted, READABLE, showing, zoomed } from "./camera";
import type { Graph, Page, Theme, ViewData } from "./data";
import { html } from "./dom";
import { counted } from "./format";
import { read, write, type Camera, type State } from "./hash";
import { Composer, type Rect } from "./layout/compose";
import { listen } from "./input";
import { Panel } from "./panel";
import { Reach } from "./reach";
import { isFirst, Scene } from "./scene";
import { Search } from "./search";
import { Stage } from "./stage";
import { canvasMeasure } from "./text";

const DARK = "dark";
const OPEN_MOST = 6000;
const GLIDE = 200;

export class App {
  readonly stage = new Stage();
  readonly bar: Bar;
  readonly picture = html("main", { class: "picture" });
  private readonly panel: Panel;
  private readonly status = html("p", { class: "status", role: "status" });
  private readonly measure = canvasMeasure();
  private readonly composer = new Composer();
  private readonly reaches = new Map<Graph, Reach>();
  private readonly searches = new Map<ViewData, Search>();
  private readonly opened = new Map<string, Set<number>>();
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private view: ViewData;
  private theme = "";
  private selected = -1;
  private hits: number[] = [];
  private hit = -1;
  private moved = false;
  private saving = 0;
  private gliding = 0;
  camera: Camera = { x: 0, y: 0, scale: 1 };
  scene!: Scene;

  constructor(readonly page: Page, root: HTMLElement) {
    this.view = page.view(page.data.view) ?? page.data.views[0]!;
    this.panel = new Panel(page, { jump: (item) => this.jump(item), copy: (text) => this.copy(text) });
    this.bar = new Bar(page, {
      view: (name) => this.showView(name),
      theme: (name) => this.showTheme(name),
      search: (query) => this.search(query),
      next: (step) => this.nextHit(step),
      fit: () => this.fit(),
      zoom: (factor) => this.zoom(factor),
      openAll: () => this.openAll(),
      fold: () => this.fold(),
    });
    this.picture.append(this.stage.element, this.status);
    root.append(this.bar.element, this.picture, this.panel.element);
    this.dark.addEventListener("change", () => this.paint());
    listen(this);
  }

  get graph(): Graph {
    return this.page.graphs[this.view.graph]!;
  }

  private get open(): Set<number> {
    let open = this.opened.get(this.view.name);
    if (!open) {
      open = new Set(this.view.open);
      this.opened.set(this.view.name, open);
    }
    return open;
  }

  private get reach(): Reach {
    const known = this.reaches.get(this.graph);
    if (known) return known;
    const reach = new Reach(this.graph);
    this.reaches.set(this.graph, reach);
    return reach;
  }

  // -- start and address ---------------------------------------------------------------------------

  start(): void {
    this.restore(read(location.hash));
  }

  restore(state: State): void {
    this.view = this.page.view(state.view ?? this.page.data.view) ?? this.page.data.views[0]!;
    this.theme = state.theme && state.theme in this.page.data.themes ? state.theme : (this.page.data.theme ?? "");
    if (state.open) {
      const groups = state.open.filter((item) => this.graph.isGroup(item) && item < this.graph.items);
      this.opened.set(this.view.name, new Set(groups));
    }
    this.bar.showTheme(this.theme);
    this.draw(false);
    if (state.camera) this.move(state.camera, true);
    else this.home();
    const at = state.selected ? this.find(state.selected) : -1;
    if (at >= 0) this.select(at);
    if (state.search) {
      this.bar.search.value = state.search;
      this.search(state.search);
    }
  }

  private find(label: string): number {
    const { graph, page } = this;
    for (let unit = 0; unit < graph.units; unit++) if (page.fact(graph, unit, "label") === label) return unit;
    return -1;
  }

  private save(): void {
    clearTimeout(this.saving);
    this.saving = window.setTimeout(() => {
      const state: State = { view: this.view.name };
      if (this.theme && this.theme !== this.page.data.theme) state.theme = this.theme;
      if (!isFirst(this.view, this.open)) state.open = [...this.open];
      if (this.selected >= 0 && !this.graph.isGroup(this.selected)) {
        state.selected = this.page.fact(this.graph, this.selected, "label");
      }
      if (this.bar.search.value) state.search = this.bar.search.value;
      if (this.moved) state.camera = this.camera;
      replaceHash(write(state));
    }, 150);
  }

  // -- drawing -------------------------------------------------------------------------------------

  private get themeName(): string {
    return this.theme || (this.dark.matches ? DARK : Object.keys(this.page.data.themes)[0]!);
  }

  draw(animate: boolean): void {
    const theme = this.page.data.themes[this.themeName]!;
    this.scene = new Scene(this.page, this.view, theme, this.open, this.measure, this.composer);
    this.stage.show(this.scene, animate);
    this.stage.element.setAttribute("aria-label", this.title());
    dress(theme, this.themeName === DARK);
    this.bar.showView(this.view.name);
    this.panel.describe(this.view, theme, this.stateLine());
    this.save();
  }

  private paint(): void {
    this.draw(false);
    this.move(this.camera, this.moved);
  }

  private title(): string {
    return `${this.page.text(this.page.data.title)}, ${this.view.name}: ${counted(this.scene.seen.nodes.length, "node")}`;
  }

  /** What the picture leaves out for now. */
  private stateLine(): string {
    const { nodes, stubs } = this.scene.seen;
    const drawn = nodes.filter((item) => !stubs.has(item));
    const closed = drawn.filter((item) => this.graph.isGroup(item));
    const total = counted(drawn.reduce((sum, item) => sum + this.graph.size[item]!, 0), "node");
    if (!closed.length) return `All ${total} are drawn${stubs.size ? ", and neighbours" : ""}.`;
    const inside = closed.reduce((sum, item) => sum + this.graph.size[item]!, 0);
    const boxes = counted(closed.length, "closed box stands", "closed boxes stand");
    return `${boxes} for ${inside.toLocaleString("en-US")} of ${total}; click one to open it.`;
  }

  // -- views, themes, opening ----------------------------------------------------------------------

  showView(name: string): void {
    const view = this.page.view(name);
    if (!view || view === this.view) return;
    this.view = view;
    this.select(-1);
    this.draw(false);
    this.home();
    if (this.bar.search.value) this.search(this.bar.search.value);
  }

  showTheme(name: string): void {
    this.theme = name;
    this.bar.showTheme(name);
    this.paint();
  }

  /** Open a closed box, or close an open one, with that box kept where it is on the screen. */
  toggle(item: number): void {
    if (!this.graph.isGroup(item) || this.scene.seen.stubs.has(item)) return;
    const before = this.rect(item);
    if (this.open.has(item)) this.open.delete(item);
    else if (!this.view.focus.includes(item)) this.open.add(item);
    this.redraw(item, before);
    this.stage.activate(item, true);
  }

  private redraw(item: number, before: Rect | undefined): void {
    const wasHome = !this.moved;
    const fits = () => fitted(this.scene.area, ...this.size()).scale >= READABLE;
    this.draw(true);
    const after = this.rect(item);
    if (wasHome && fits()) this.glide(this.scene.opening(...this.size()), false);
    else if (before && after) {
      const { scale } = this.camera;
      const x = this.camera.x + (before.x + before.width / 2 - after.x - after.width / 2) * scale;
      const y = this.camera.y + (before.y - after.y) * scale;
      this.move({ scale, x, y }, true);
      this.glide(showing({ scale, x, y }, after, ...this.size()), true);
    }
    this.showHits();
  }

  openAll(): void {
    if (this.graph.units > OPEN_MOST) {
      this.say(`This picture has ${counted(this.graph.units, "node")}: open boxes one by one.`);
      return;
    }
    for (let item = this.graph.units; item < this.graph.items; item++) this.open.add(item);
    this.draw(true);
    this.home();
  }

  fold(): void {
    this.opened.delete(this.view.name);
    this.draw(true);
    this.home();
  }

  // -- camera --------------------------------------------------------------------------------------

  size(): [number, number] {
    const { width, height } = this.picture.getBoundingClientRect();
    return [width, height];
  }

  move(camera: Camera, moved: boolean): void {
    this.camera = camera;
    this.moved = moved;
    this.stage.move(camera);
    this.save();
  }

  /** Move in a short while; at once for readers who want no motion. */
  private glide(to: Camera, moved: boolean): void {
    cancelAnimationFrame(this.gliding);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.move(to, moved);
      return;
    }
    const from = this.camera;
    const start = performance.now();
    const step = (now: number): void => {
      const t = Math.min(1, (now - start) / GLIDE);
      const part = 1 - (1 - t) ** 3;
      const between = (a: number, b: number) => a + (b - a) * part;
      this.move({ x: between(from.x, to.x), y: between(from.y, to.y), scale: between(from.scale, to.scale) }, moved);
      if (t < 1) this.gliding = requestAnimationFrame(step);
    };
    this.gliding = requestAnimationFrame(step);
  }

  /** Where the page starts: all, or what can be read of it. */
  home(): void {
    this.move(this.scene.opening(...this.size()), false);
  }

  fit(): void {
    this.move(fitted(this.scene.area, ...this.size()), true);
  }

  zoom(factor: number): void {
    const [width, height] = this.size();
    this.move(zoomed(this.camera, factor, width / 2, height / 2), true);
  }

  resized(): void {
    if (!this.moved) this.home();
  }

  rect(item: number): Rect | undefined {
    return this.scene.layout.boxes.get(item) ?? this.scene.layout.nodes.get(item);
  }

  /** Bring an item into sight and put the keyboard on it. */
  reveal(item: number): void {
    const title = this.scene.layout.titles.get(item);
    const rect = title ? { x: title[0], y: title[1], width: 120, height: 16 } : this.rect(item);
    if (rect) this.move(showing(this.camera, rect, ...this.size()), this.moved);
    this.stage.activate(item, true);
    this.hover(item, -1);
  }

  // -- nodes ---------------------------------------------------------------------------------------

  /** Show an item, opening what stands around it. */
  jump(item: number): void {
    const closed = this.graph.above(item).filter((group) => !this.open.has(group));
    const isOutside = this.view.focus.length > 0 && this.scene.seen.itemOf[this.graph.first[item]!] !== item;
    for (const group of closed) this.open.add(group);
    if (closed.length) this.draw(true);
    const rect = this.rect(item);
    if (!rect) {
      if (isOutside) this.say("This node lies outside of the part drawn.");
      return;
    }
    this.move(centred(this.camera, rect, ...this.size()), true);
    this.select(item);
    this.stage.activate(item, false);
    this.showHits();
  }

  select(item: number): void {
    this.selected = item;
    this.stage.select(item);
    if (item < 0) this.panel.clear();
    else this.panel.show(this.view, this.graph, this.reach, item, true);
    this.trace(item < 0 ? null : { item });
    this.save();
  }

  get selection(): number {
    return this.selected;
  }

  /** Point at a node or line for a moment. */
  hover(item: number, edge: number): void {
    if (item >= 0) this.panel.show(this.view, this.graph, this.reach, item, item === this.selected);
    else if (this.selected >= 0) this.panel.show(this.view, this.graph, this.reach, this.selected, true);
    else this.panel.clear();
    if (edge >= 0) this.trace({ edge });
    else this.trace(item >= 0 ? { item } : this.selected >= 0 ? { item: this.selected } : null);
  }

  /** Light up the path of a tensor. */
  private trace(what: { item?: number; edge?: number } | null): void {
    if (!what) {
      this.stage.light(null);
      return;
    }
    const { sources, targets } = this.graph.data;
    const wires = what.edge === undefined ? [] : this.scene.edge(what.edge).wires;
    const from = what.item === undefined ? wires.map((wire) => sources[wire]!) : this.graph.unitsIn(what.item);
    const to = what.item === undefined ? wires.map((wire) => targets[wire]!) : from;
    const [before, after] = [this.reach.before(from), this.reach.after(to)];
    const items = new Set<number>();
    for (const unit of [...before, ...after]) items.add(this.scene.seen.itemOf[unit]!);
    const edges = new Set<number>();
    this.scene.seen.edges.forEach((edge, k) => {
      const isOn = (wire: number) =>
        (before.has(sources[wire]!) && before.has(targets[wire]!)) || (after.has(sources[wire]!) && after.has(targets[wire]!));
      if (k === what.edge || edge.wires.some(isOn)) edges.add(k);
    });
    for (const box of this.scene.seen.boxes) items.add(box);
    this.stage.light({ items, edges });
  }

  // -- search --------------------------------------------------------------------------------------

  search(query: string): void {
    this.hit = -1;
    this.hits = [];
    let note = "";
    if (query) {
      const index = this.searches.get(this.view) ?? new Search(this.page, this.view, this.graph);
      this.searches.set(this.view, index);
      const found = index.find(query);
      this.hits = found.items;
      note = `${found.items.length ? counted(found.items.length, "match", "matches") : "no match"}${found.plain ? " as plain text" : ""}`;
    }
    this.bar.showFound(note);
    this.showHits();
    this.save();
  }

  nextHit(step: number): void {
    if (!this.hits.length) return;
    this.hit = (this.hit + step + this.hits.length + (this.hit < 0 && step < 0 ? 1 : 0)) % this.hits.length;
    this.bar.showFound(`${this.hit + 1} of ${this.hits.length}`);
    this.jump(this.hits[this.hit]!);
  }

  /** Mark what is found, or the closed box that it lies in. */
  private showHits(): void {
    const shown = this.hits.map((item) => (this.rect(item) ? item : this.scene.seen.itemOf[this.graph.first[item]!]!));
    this.stage.mark(new Set(shown));
  }

  // -- small things --------------------------------------------------------------------------------

  say(text: string): void {
    this.status.textContent = text;
    window.setTimeout(() => {
      if (this.status.textContent === text) this.status.textContent = "";
    }, 4000);
  }

  private copy(text: string): void {
    const done = () => this.say(`Copied ${text}`);
    const old = () => {
      const field = html("textarea", { "aria-hidden": "true" });
      field.value = text;
      document.body.append(field);
      field.select();
      if (document.execCommand("copy")) done();
      field.remove();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, old);
    else old();
  }
}

function replaceHash(hash: string): void {
  try {
    history.replaceState(null, "", `#${hash}`);
  } catch {
    // A frame without an address of its own keeps no state.
  }
}

/** The page around the picture takes its colours from the theme. */
function dress(theme: Theme, isDark: boolean): void {
  const { style } = document.documentElement;
  const colors = {
    background: theme.background, ink: theme.ink, muted: theme.muted, line: theme.box_stroke,
    soft: theme.box_fills[0]!, strong: theme.box_fills[theme.box_fills.length - 1]!, mark: theme.ramp[5]!,
  };
  for (const [name, value] of Object.entries(colors)) style.setProperty(`--${name}`, value);
  style.colorScheme = isDark ? "dark" : "light";
}
