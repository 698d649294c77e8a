/** Pan and zoom. */

import type { Camera } from "./hash";
import type { Rect } from "./layout/compose";

const LEAST = 0.02;
const MOST = 6;
/** Text is readable from this scale on. */
export const READABLE = 0.85;
const LARGEST_FIT = 1.5;
const MARGIN = 24;

export function clamped(scale: number): number {
  return Math.min(MOST, Math.max(LEAST, scale));
}

/** Zoom by a factor around a point of the screen. */
export function zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = clamped(camera.scale * factor);
  const ratio = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * ratio, y: y - (y - camera.y) * ratio };
}

/** All of a picture, in the middle. */
export function fitted(picture: Rect, width: number, height: number): Camera {
  const scale = clamped(Math.min(
    (width - 2 * MARGIN) / Math.max(picture.width, 1), (height - 2 * MARGIN) / Math.max(picture.height, 1), LARGEST_FIT,
  ));
  return {
    scale,
    x: (width - picture.width * scale) / 2 - picture.x * scale,
    y: (height - picture.height * scale) / 2 - picture.y * scale,
  };
}

/** All of a picture if it can be read so, else its beginning at a size that can be read. */
export function opening(picture: Rect, first: Rect, width: number, height: number): Camera {
  const all = fitted(picture, width, height);
  if (all.scale >= READABLE) return all;
  const scale = READABLE;
  const start = (room: number, from: number, size: number, at: number, span: number) => {
    if (size * scale <= room - 2 * MARGIN) return (room - size * scale) / 2 - from * scale;
    const low = room - MARGIN - (from + size) * scale;
    return Math.max(low, Math.min(MARGIN - from * scale, room * 0.4 - (at + span / 2) * scale));
  };
  return {
    scale,
    x: start(width, picture.x, picture.width, first.x, first.width),
    y: start(height, picture.y, picture.height, first.y, first.height),
  };
}

/** Move as little as needed so that a rectangle is seen, and no closer than can be read. */
export function showing(camera: Camera, rect: Rect, width: number, height: number): Camera {
  const room = Math.min((width - 2 * MARGIN) / rect.width, (height - 2 * MARGIN) / rect.height);
  const scale = room < camera.scale ? Math.max(Math.min(room, camera.scale), Math.min(READABLE, camera.scale)) : camera.scale;
  const shift = (start: number, size: number, at: number, span: number) => {
    const low = MARGIN - start * scale;
    const high = span - MARGIN - (start + size) * scale;
    if (high < low) return low;
    return Math.min(high, Math.max(low, at));
  };
  const x = camera.x + (rect.x + rect.width / 2) * (camera.scale - scale);
  const y = camera.y + (rect.y + rect.height / 2) * (camera.scale - scale);
  return { scale, x: shift(rect.x, rect.width, x, width), y: shift(rect.y, rect.height, y, height) };
}

/** A rectangle in the middle, at a size that can be read. */
export function centred(camera: Camera, rect: Rect, width: number, height: number): Camera {
  const scale = Math.max(camera.scale, 1);
  return {
    scale,
    x: width / 2 - (rect.x + rect.width / 2) * scale,
    y: height / 2 - (rect.y + rect.height / 2) * scale,
  };
}
