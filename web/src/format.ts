/** Quantities as the Python side prints them. */

type Unit = readonly [number, string];

const BYTES: readonly Unit[] = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const COUNTS: readonly Unit[] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const TIMES: readonly Unit[] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

function scaled(value: number, units: readonly Unit[]): string {
  const [size, unit] = units.find(([least]) => Math.abs(value) >= least * 0.9995) ?? units[units.length - 1]!;
  const number = value / size;
  const text = Math.abs(number) < 999.5 ? String(Number(number.toPrecision(3))) : number.toFixed(0);
  return `${text} ${unit}`;
}

export function bytes(value: number): string {
  return Math.abs(value) < 1024 ? `${value} B` : scaled(value, BYTES);
}

export function count(value: number): string {
  return Math.abs(value) < 1000 ? String(value) : scaled(value, COUNTS);
}

export function flops(value: number): string {
  return Math.abs(value) < 1000 ? `${value} FLOP` : `${count(value)}FLOP`;
}

export function duration(value: number): string {
  return value === 0 ? "0 s" : scaled(value, TIMES);
}

/** `1 op`, `3 ops`. */
export function counted(number: number, name: string, plural = `${name}s`): string {
  return `${number.toLocaleString("en-US")} ${number === 1 ? name : plural}`;
}
