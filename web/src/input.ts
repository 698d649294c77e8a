/** Mouse, touch and keyboard. */

import type { App } from "./app";
import { zoomed } from "./camera";
import type { Rect } from "./layout/compose";

const STILL = 4;
const STEP = 60;

export function listen(app: App): void {
  pointers(app);
  wheel(app);
  hovering(app);
  document.addEventListener("keydown", (event) => key(app, event));
  new ResizeObserver(() => app.scene && app.resized()).observe(app.picture);
  window.addEventListener("hashchange", () => app.start());
}

function itemAt(target: EventTarget | null, name: "item" | "edge"): number {
  const element = target instanceof Element ? target.closest<SVGElement>(`[data-${name}]`) : null;
  return element ? Number(element.dataset[name]) : -1;
}

// -- pointers ------------------------------------------------------------------------------------

function pointers(app: App): void {
  const { element } = app.stage;
  const down = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  let pressed: EventTarget | null = null;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (!down.size) [travelled, pressed] = [0, event.target];
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  window.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
    travelled += Math.abs(dx) + Math.abs(dy);
    if (travelled > STILL) element.classList.add("dragging");
    const others = [...down].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    if (others[0]) pinch(app, before, { x: event.clientX, y: event.clientY }, others[0]);
    else if (travelled > STILL) app.move({ ...app.camera, x: app.camera.x + dx, y: app.camera.y + dy }, true);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  const up = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId) || down.size) return;
    element.classList.remove("dragging");
    if (event.type === "pointerup" && travelled <= STILL) click(app, itemAt(pressed, "item"));
  };
  window.addEventListener("pointerup", up);
  window.addEventListener("pointercancel", up);
}

function pinch(app: App, before: { x: number; y: number }, now: { x: number; y: number }, other: { x: number; y: number }): void {
  const span = (point: { x: number; y: number }) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
  const corner = app.picture.getBoundingClientRect();
  app.move(zoomed(app.camera, span(now) / span(before), other.x - corner.left, other.y - corner.top), true);
}

function click(app: App, item: number): void {
  if (item < 0) {
    app.select(-1);
    return;
  }
  app.stage.activate(item, true);
  if (app.graph.isGroup(item)) {
    app.select(-1);
    app.toggle(item);
  } else {
    app.select(item);
  }
}

function wheel(app: App): void {
  app.stage.element.addEventListener("wheel", (event) => {
    event.preventDefault();
    const corner = app.picture.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp((-event.deltaY * lines * (event.ctrlKey ? 4 : 1)) / 500);
    app.move(zoomed(app.camera, factor, event.clientX - corner.left, event.clientY - corner.top), true);
  }, { passive: false });
}

function hovering(app: App): void {
  let shown = "";
  app.stage.element.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || event.buttons) return;
    const [item, edge] = [itemAt(event.target, "item"), itemAt(event.target, "edge")];
    const now = `${item} ${edge}`;
    if (now === shown) return;
    shown = now;
    app.hover(item, edge);
  });
  app.stage.element.addEventListener("pointerleave", () => {
    shown = "";
    app.hover(-1, -1);
  });
}

// -- keyboard ------------------------------------------------------------------------------------

const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
};

function key(app: App, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { activeElement } = document;
  if (event.key === "Escape") return escape(app);
  if (activeElement instanceof HTMLInputElement || activeElement instanceof HTMLSelectElement) return;
  if (event.key === "Enter" || event.key === " ") {
    const item = itemAt(activeElement, "item");
    if (item < 0) return;
    event.preventDefault();
    if (app.graph.isGroup(item)) app.toggle(item);
    else app.select(item);
    return;
  }
  const arrow = ARROWS[event.key];
  if (arrow && !(activeElement instanceof HTMLElement && activeElement.closest(".panel"))) {
    event.preventDefault();
    step(app, itemAt(activeElement, "item"), arrow);
    return;
  }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act(app);
}

const KEYS: Record<string, (app: App) => void> = {
  "/": (app) => app.bar.search.select(),
  f: (app) => app.fit(),
  "+": (app) => app.zoom(1.3),
  "=": (app) => app.zoom(1.3),
  "-": (app) => app.zoom(1 / 1.3),
  n: (app) => app.nextHit(1),
  N: (app) => app.nextHit(-1),
};

function escape(app: App): void {
  if (document.activeElement === app.bar.search || app.bar.search.value) {
    app.bar.search.value = "";
    app.search("");
    app.bar.search.blur();
  } else if (app.selection >= 0) app.select(-1);
  else app.home();
}

/** To the nearest item that way if the keyboard stands on one, else move the picture. */
function step(app: App, from: number, [dx, dy]: [number, number]): void {
  const here = from >= 0 ? app.rect(from) : undefined;
  if (!here) {
    app.move({ ...app.camera, x: app.camera.x - dx * STEP, y: app.camera.y - dy * STEP }, true);
    return;
  }
  const next = nearest(app, from, here, dx, dy);
  if (next < 0) return;
  app.stage.activate(next, false);
  app.reveal(next);
}

function nearest(app: App, from: number, here: Rect, dx: number, dy: number): number {
  const spot = (rect: Rect, item: number): [number, number] => {
    const title = app.scene.layout.titles.get(item);
    return title ?? [rect.x + rect.width / 2, rect.y + rect.height / 2];
  };
  const [x, y] = spot(here, from);
  let [best, least] = [-1, Infinity];
  for (const [item, rect] of [...app.scene.layout.nodes, ...app.scene.layout.boxes]) {
    if (item === from) continue;
    const [a, b] = spot(rect, item);
    const along = (a - x) * dx + (b - y) * dy;
    const across = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
    if (along > 1 && along + 2.5 * across < least) [best, least] = [item, along + 2.5 * across];
  }
  return best;
}
