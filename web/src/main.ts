/** Start: read the data, wait for the font that all sizes are measured with, draw. */

import { App } from "./app";
import { Page, type PageData } from "./data";
import { FAMILY } from "./text";

/** The data of the page, which travels packed where it is large. */
async function unpacked(element: HTMLElement): Promise<PageData> {
  const text = element.textContent!;
  if (!element.dataset.packed) return JSON.parse(text) as PageData;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return (await new Response(stream).json()) as PageData;
}

async function start(): Promise<void> {
  const fonts = [400, 600].map((weight) => document.fonts.load(`${weight} 10px ${FAMILY}`, "ab"));
  const data = await unpacked(document.getElementById("data")!);
  await Promise.all(fonts);
  const app = new App(new Page(data), document.getElementById("app")!);
  app.start();
  document.documentElement.dataset.ready = "yes";
  performance.mark("ready");
}

void start();
