/** The bar above the picture: title, views, search, theme, and what moves the camera. */

import type { Page } from "./data";
import { button, html } from "./dom";

export interface BarActions {
  view: (name: string) => void;
  theme: (name: string) => void;
  search: (query: string) => void;
  next: (step: number) => void;
  fit: () => void;
  zoom: (factor: number) => void;
  openAll: () => void;
  fold: () => void;
}

const AUTO = "auto";

export class Bar {
  readonly element = html("header", { class: "bar" });
  readonly search = html("input", {
    type: "search", placeholder: "Search (regular expression)   /", "aria-label": "Search nodes by regular expression",
    spellcheck: "false", autocomplete: "off",
  });
  private readonly found = html("span", { class: "found", role: "status" });
  private readonly views = html("nav", { class: "views", "aria-label": "Views" });
  private readonly themes = html("select", { "aria-label": "Theme" });

  constructor(page: Page, private readonly actions: BarActions) {
    const title = html("div", { class: "heading" }, html("h1", {}, page.text(page.data.title)));
    title.append(...page.data.header.map((line) => html("p", {}, page.text(line))));
    for (const view of page.data.views) {
      const choice = button(view.name, page.text(view.question), () => actions.view(view.name), { "data-view": view.name });
      this.views.append(choice);
    }
    for (const name of [AUTO, ...Object.keys(page.data.themes)]) {
      this.themes.append(html("option", { value: name }, name === AUTO ? "light / dark" : name.replace("_", " ")));
    }
    this.themes.addEventListener("change", () => actions.theme(this.themes.value === AUTO ? "" : this.themes.value));
    this.listen();
    this.element.append(title, this.tools(), this.views);
  }

  private tools(): HTMLElement {
    const { actions } = this;
    const find = html("div", { class: "search", role: "search" }, this.search, this.found);
    const moves = html(
      "div", { class: "moves", role: "group", "aria-label": "Picture" },
      button("−", "Zoom out (-)", () => actions.zoom(1 / 1.3), { "aria-label": "Zoom out" }),
      button("+", "Zoom in (+)", () => actions.zoom(1.3), { "aria-label": "Zoom in" }),
      button("Fit", "Show all (f)", actions.fit),
      button("Fold", "As at first", actions.fold),
      button("Open all", "Open every box", actions.openAll),
    );
    return html("div", { class: "tools" }, find, moves, this.themes);
  }

  private listen(): void {
    let waiting = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = window.setTimeout(() => this.actions.search(this.search.value), 60);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      clearTimeout(waiting);
      this.actions.search(this.search.value);
      this.actions.next(event.shiftKey ? -1 : 1);
    });
  }

  showView(name: string): void {
    for (const choice of this.views.querySelectorAll("button")) {
      choice.setAttribute("aria-pressed", String(choice.dataset.view === name));
    }
  }

  showTheme(name: string): void {
    this.themes.value = name || AUTO;
  }

  showFound(text: string): void {
    this.found.textContent = text;
  }
}
