/** The state of the page in the address: what a reload or a sent link brings back. */

export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export interface State {
  view?: string;
  theme?: string;
  /** Groups that are open, if they are not those that the view opens with. */
  open?: number[];
  selected?: string;
  search?: string;
  camera?: Camera;
}

export function write(state: State): string {
  const parts: string[] = [];
  if (state.view) parts.push(`view=${encodeURIComponent(state.view)}`);
  if (state.theme) parts.push(`theme=${encodeURIComponent(state.theme)}`);
  if (state.open) parts.push(`open=${ranges(state.open)}`);
  if (state.selected) parts.push(`at=${encodeURIComponent(state.selected)}`);
  if (state.search) parts.push(`search=${encodeURIComponent(state.search)}`);
  if (state.camera) {
    const { x, y, scale } = state.camera;
    parts.push(`see=${Math.round(x)},${Math.round(y)},${Number(scale.toFixed(3))}`);
  }
  return parts.join("&");
}

export function read(hash: string): State {
  const state: State = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at > 0) take(state, part.slice(0, at), decoded(part.slice(at + 1)));
  }
  return state;
}

function take(state: State, name: string, value: string): void {
  if (name === "view") state.view = value;
  else if (name === "theme") state.theme = value;
  else if (name === "open") state.open = numbers(value);
  else if (name === "at") state.selected = value;
  else if (name === "search") state.search = value;
  else if (name === "see") {
    const [x, y, scale] = value.split(",").map(Number);
    if ([x, y, scale].every(Number.isFinite) && scale! > 0) state.camera = { x: x!, y: y!, scale: scale! };
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** `3.7-9` for 3, 7, 8, 9. */
export function ranges(values: number[]): string {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let k = 0; k < sorted.length; k++) {
    const start = k;
    while (sorted[k + 1] === sorted[k]! + 1) k++;
    parts.push(start === k ? String(sorted[k]) : `${sorted[start]}-${sorted[k]}`);
  }
  return parts.join(".");
}

export function numbers(text: string): number[] {
  const found: number[] = [];
  for (const part of text.split(".").filter(Boolean)) {
    const [low, high = low] = part.split("-").map(Number);
    if (!Number.isInteger(low) || !Number.isInteger(high) || high! - low! > 100_000) continue;
    for (let k = low!; k <= high!; k++) found.push(k);
  }
  return found;
}
