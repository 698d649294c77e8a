/** Colours of a theme: what a look means in it, and ink that can be read. */

import type { Look, Theme } from "./data";

const MIN_CONTRAST = 4.5;
const known = new Map<string, number>();

export function luminance(color: string): number {
  const cached = known.get(color);
  if (cached !== undefined) return cached;
  const parts = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255);
  const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  const value = 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  known.set(color, value);
  return value;
}

export function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

export function mix(a: string, b: string, share: number): string {
  const part = (at: number) => {
    const [x, y] = [a, b].map((color) => parseInt(color.slice(at, at + 2), 16));
    return Math.round(x! + (y! - x!) * share).toString(16).padStart(2, "0");
  };
  return `#${part(1)}${part(3)}${part(5)}`.toUpperCase();
}

/** A text colour of the theme with enough contrast on a fill. */
export function inkOn(theme: Theme, fill: string): string {
  const best = (colors: readonly string[]) =>
    colors.reduce((a, b) => (contrast(b, fill) > contrast(a, fill) ? b : a));
  const own = best(theme.inks);
  return contrast(own, fill) >= MIN_CONTRAST ? own : best(["#000000", "#FFFFFF"]);
}

/** A quieter text colour than `ink` that still reads on a fill. */
export function mutedOn(ink: string, fill: string): string {
  for (const share of [0.34, 0.26, 0.18, 0.1]) {
    const mixed = mix(ink, fill, share);
    if (contrast(mixed, fill) >= MIN_CONTRAST + 0.5) return mixed;
  }
  return ink;
}

export interface Paint {
  fill: string;
  stroke: string;
  width: number;
  dashed: boolean;
  ink: string;
  muted: string;
}

export function fillOf(theme: Theme, fill: string): string {
  if (fill.startsWith("@")) return theme.ramp[Number(fill.slice(1))] ?? theme.node_fill;
  if (fill === "node") return theme.node_fill;
  return theme.roles[fill]?.fill ?? color(fill, theme.node_fill);
}

export function strokeOf(theme: Theme, stroke: string): string {
  if (stroke === "node") return theme.node_stroke;
  if (stroke === "ink") return theme.ink;
  return theme.roles[stroke]?.stroke ?? color(stroke, theme.node_stroke);
}

function color(text: string, otherwise: string): string {
  return /^#[0-9A-Fa-f]{6}$/.test(text) ? text : otherwise;
}

/** A look in a theme. */
export function paint(theme: Theme, look: Look): Paint {
  const fill = fillOf(theme, look[0]);
  const ink = inkOn(theme, fill);
  const role = look[0] === look[1] ? theme.roles[look[1]] : undefined;
  const width = Math.max(look[2], role?.width ?? 0) * theme.node_width;
  return { fill, stroke: strokeOf(theme, look[1]), width, dashed: look[3] === 1, ink, muted: mutedOn(ink, fill) };
}
