/** The side panel: details of a node, caption, legend, and the sorted list of a metric. */

import type { Graph, Page, Theme, ViewData } from "./data";
import { button, html, svg } from "./dom";
import { bytes, count, counted, duration, flops } from "./format";
import { motifs } from "./shapes";
import type { Reach } from "./reach";
import { fillOf, strokeOf } from "./theme";

const LISTED = 8;
const KEYS = [
  ["click, Enter", "open or close a box, choose a node"],
  ["point at", "light up the path of a tensor"],
  ["/", "search, Enter for the next match"],
  ["f  +  −", "fit, zoom"],
  ["arrows", "move the picture, or from node to node"],
  ["Esc", "back"],
] as const;

export interface PanelActions {
  jump: (item: number) => void;
  copy: (text: string) => void;
}

export class Panel {
  readonly element = html("aside", { class: "panel", "aria-label": "About the picture", tabindex: 0 });
  private readonly details = html("section", { class: "details", "aria-label": "Details" });
  private readonly caption = html("section", { class: "caption", "aria-label": "Caption" });
  private readonly legend = html("section", { class: "legend", "aria-label": "Legend" });
  private readonly top = html("section", { class: "top", "aria-label": "Largest values" });

  constructor(private readonly page: Page, private readonly actions: PanelActions) {
    const keys = KEYS.flatMap(([key, what]) => [html("dt", {}, key), html("dd", {}, what)]);
    const help = html("section", { class: "help", "aria-label": "Keys" }, html("dl", {}, ...keys));
    this.element.append(this.details, this.caption, this.legend, this.top, help);
  }

  // -- the view ------------------------------------------------------------------------------------

  describe(view: ViewData, theme: Theme, state: string): void {
    const lines = view.caption.map((number) => html("p", {}, this.page.text(number)));
    this.caption.replaceChildren(
      html("h2", {}, this.page.text(view.question)), ...lines, html("p", { class: "state" }, state),
    );
    this.showLegend(view, theme);
    this.showTop(view);
  }

  private showLegend(view: ViewData, theme: Theme): void {
    this.legend.replaceChildren();
    if (!view.legend) return;
    for (const [title, least, middle, most] of view.legend.ramps) {
      const steps = theme.ramp.map((color) => {
        const step = html("span", { class: "step" });
        step.style.background = color;
        return step;
      });
      const marks = [least, middle, most].map((text) => html("span", {}, text));
      this.legend.append(
        html("p", { class: "ramp-title" }, title),
        html("div", { class: "ramp", role: "img", "aria-label": `${least} to ${most}, median ${middle}` }, ...steps),
        html("div", { class: "marks" }, ...marks),
      );
    }
    const entries = view.legend.entries.map((entry) => html("li", {}, swatch(entry, theme), entry[0]));
    if (entries.length) this.legend.append(html("ul", { class: "entries" }, ...entries));
  }

  private showTop(view: ViewData): void {
    this.top.replaceChildren();
    if (!view.top.length) return;
    const most = view.top[0]![2] || 1;
    const rows = view.top.map(([item, value, share]) => {
      const bar = html("span", { class: "share" });
      bar.style.width = `${(100 * share) / most}%`;
      const name = html("span", { class: "name" }, this.page.title(view, item));
      const amount = html("span", { class: "amount" }, `${this.page.text(value)} · ${share < 0.1 ? "<0.1" : share}%`);
      const row = button("", "Go to this node", () => this.actions.jump(item), { class: "row" });
      row.append(name, amount, bar);
      return html("li", {}, row);
    });
    this.top.append(html("h2", {}, `Largest by ${this.page.text(view.metric)}`), html("ol", {}, ...rows));
  }

  // -- one node ------------------------------------------------------------------------------------

  clear(): void {
    this.details.replaceChildren();
  }

  show(view: ViewData, graph: Graph, reach: Reach, item: number, isChosen: boolean): void {
    const rows = graph.isGroup(item) ? this.groupFacts(graph, item) : this.unitFacts(graph, item);
    const list = html("dl", {});
    for (const [name, value] of rows) if (value) list.append(html("dt", {}, name), html("dd", {}, value));
    const parts: Node[] = [html("h2", {}, this.page.title(view, item)), list];
    if (isChosen) parts.push(...this.links(view, graph, reach, item), this.buttons(graph, item));
    this.details.replaceChildren(...parts);
  }

  private unitFacts(graph: Graph, unit: number): [string, string][] {
    const text = (name: Parameters<Page["fact"]>[2]) => this.page.fact(graph, unit, name);
    const number = (name: Parameters<Page["number"]>[2], print: (value: number) => string) => {
      const value = this.page.number(graph, unit, name);
      return value === null ? "" : print(value);
    };
    const passes = this.page.number(graph, unit, "passes") ?? 1;
    return [
      ["label", text("label")],
      ["shape", text("shape")],
      ["dtype", text("kind")],
      ["memory", number("bytes", bytes)],
      ["time", number("time", duration)],
      ["FLOPs", number("flops", flops)],
      ["params", number("params", (value) => (value ? count(value) : ""))],
      ["saved for backward", number("saved", bytes)],
      ["values", text("state")],
      ["passes", passes > 1 ? `${passes}, sums over all` : ""],
      ["module", text("module")],
      ["code", text("code")],
    ];
  }

  private groupFacts(graph: Graph, group: number): [string, string][] {
    const units = graph.unitsIn(group);
    const sum = (name: Parameters<Page["number"]>[2], print: (value: number) => string): string => {
      const values = units.map((unit) => this.page.number(graph, unit, name));
      const known = values.filter((value): value is number => value !== null);
      return known.length ? print(known.reduce((a, b) => a + b, 0)) : "";
    };
    const names = units.map((unit) => this.page.fact(graph, unit, "label"));
    return [
      ["holds", counted(units.length, "node")],
      ["first", names[0] ?? ""],
      ["last", names[names.length - 1] ?? ""],
      ["memory", sum("bytes", bytes)],
      ["time", sum("time", duration)],
      ["FLOPs", sum("flops", flops)],
    ];
  }

  private links(view: ViewData, graph: Graph, reach: Reach, item: number): HTMLElement[] {
    if (graph.isGroup(item)) return [];
    const list = (title: string, units: number[]): HTMLElement => {
      const buttons = units.slice(0, LISTED).map((unit) =>
        html("li", {}, button(this.page.title(view, unit), this.page.fact(graph, unit, "label"), () => this.actions.jump(unit))),
      );
      const more = units.length > LISTED ? [html("li", {}, `and ${units.length - LISTED} more`)] : [];
      return html("div", { class: "links" }, html("h3", {}, title), html("ul", {}, ...buttons, ...more));
    };
    const [from, to] = [reach.parentsOf(item), reach.childrenOf(item)];
    return [...(from.length ? [list("reads", from)] : []), ...(to.length ? [list("read by", to)] : [])];
  }

  private buttons(graph: Graph, item: number): HTMLElement {
    const row = html("div", { class: "buttons" });
    if (graph.isGroup(item)) return row;
    const label = this.page.fact(graph, item, "label");
    const code = this.page.fact(graph, item, "code").split(" in ")[0]!;
    row.append(button("Copy label", `Copy ${label}`, () => this.actions.copy(label)));
    if (code) row.append(button("Copy file:line", `Copy ${code}`, () => this.actions.copy(code)));
    return row;
  }
}

function swatch([, fill, stroke, dashed, motif]: [string, string, string, number, string | null], theme: Theme): SVGSVGElement {
  const frame = { x: 0.5, y: 0.5, width: 19, height: 11, rx: 3 };
  const dash = dashed ? "4 3" : undefined;
  const box = svg("rect", { ...frame, fill: fillOf(theme, fill), stroke: strokeOf(theme, stroke), "stroke-dasharray": dash });
  const picture = svg("svg", { width: 20, height: 12, "aria-hidden": "true" }, box);
  if (motif) picture.append(motifs(theme), svg("rect", { ...frame, fill: `url(#motif-${motif})` }));
  return picture;
}
