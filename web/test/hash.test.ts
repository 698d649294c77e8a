import { expect, test } from "vitest";
import { numbers, ranges, read, write, type State } from "../src/hash";

test("a state comes back from the address", () => {
  const state: State = {
    view: "memory", theme: "dark", open: [3, 7, 8, 9], selected: "relu_1_2:3", search: "a&b=c#d", camera: { x: -12, y: 40, scale: 0.85 },
  };
  expect(read(`#${write(state)}`)).toEqual(state);
});

test("numbers travel as ranges", () => {
  expect(ranges([9, 7, 8, 3, 3])).toBe("3.7-9");
  expect(numbers("3.7-9")).toEqual([3, 7, 8, 9]);
  expect(ranges([])).toBe("");
});

test("what is no state is left out", () => {
  expect(read("#view&=x&open=a.b-c&see=1,2,0&theme=%E0%A4%A")).toEqual({ open: [], theme: "" });
  expect(numbers("0-99999999")).toEqual([]);
});
