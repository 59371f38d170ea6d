import { expect, test } from "vitest";
import { characters, units } from "./characters";

// Python counts characters, JavaScript UTF-16 units.
test.each([
  ["abc", 2, 2],
  ["ä€c", 2, 2],
  ["😀b", 2, 1],
  ["a😀😀b", 5, 3],
  ["", 0, 0],
])("in %j, unit %d is character %d", (text, unit, character) => {
  expect(characters(text, unit)).toBe(character);
  expect(units(text, character)).toBe(unit);
});

test("a character behind the end is the end", () => {
  expect(units("😀", 5)).toBe(2);
});
