import { expect, test } from "vitest";
import * as format from "../src/format";
import cases from "./quantities.json";

test.each(Object.entries(cases))("%s print as Python prints them", (name, rows) => {
  const print = format[name as keyof typeof cases];
  for (const [value, text] of rows as [number, string][]) expect(print(value)).toBe(text);
});

test("counts things", () => {
  expect(format.counted(1, "op")).toBe("1 op");
  expect(format.counted(1200, "match", "matches")).toBe("1,200 matches");
});
