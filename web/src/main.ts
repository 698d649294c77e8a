/** Start: read the data, wait for the font that all sizes are measured with, draw. */

import { App } from "./app";
import { Page, type PageData } from "./data";
import { FAMILY } from "./text";

async function start(): Promise<void> {
  const data = JSON.parse(document.getElementById("data")!.textContent!) as PageData;
  await Promise.all([400, 600].map((weight) => document.fonts.load(`${weight} 10px ${FAMILY}`, "ab")));
  const app = new App(new Page(data), document.getElementById("app")!);
  app.start();
  document.documentElement.dataset.ready = "yes";
  performance.mark("ready");
}

void start();
