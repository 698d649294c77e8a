/** Search by regular expression over everything that a node says of itself. */

import type { Graph, Page, ViewData } from "./data";

export interface Found {
  items: number[];
  /** Whether the text was no expression and was taken as it stands. */
  plain: boolean;
}

export class Search {
  private readonly texts: string[];

  constructor(page: Page, view: ViewData, private readonly graph: Graph) {
    this.texts = Array.from({ length: graph.items }, (_, item) => {
      const rows = page.rows(view, item).map(([, text]) => text);
      if (graph.isGroup(item)) return rows.slice(0, 1).join("\n");
      const facts = (["label", "type", "kind", "module", "code", "state"] as const).map((name) => page.fact(graph, item, name));
      return [...rows, ...facts].filter(Boolean).join("\n");
    });
  }

  find(query: string): Found {
    const { test, plain } = matcher(query);
    const items: number[] = [];
    this.texts.forEach((text, item) => {
      if (test(text)) items.push(item);
    });
    items.sort((a, b) => this.graph.first[a]! - this.graph.first[b]! || b - a);
    return { items, plain };
  }
}

function matcher(query: string): { test: (text: string) => boolean; plain: boolean } {
  try {
    const pattern = new RegExp(query, "im");
    return { test: (text) => pattern.test(text), plain: false };
  } catch {
    const wanted = query.toLowerCase();
    return { test: (text) => text.toLowerCase().includes(wanted), plain: true };
  }
}
