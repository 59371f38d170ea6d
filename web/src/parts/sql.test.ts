import { expect, test } from "vitest";
import { isKeyword, type Schema, sqlName, suggest } from "./sql";

const column = (name: string, masked = false) => ({
  column_name: name,
  data_type: "text",
  is_nullable: "YES",
  comment: null,
  primary_key: false,
  references: null,
  masked,
});
const schema: Schema = {
  tables: ["users", "orders", "sales.items", '"Odd ""name"""'],
  schema: {
    users: [column("id"), column("email", true)],
    orders: [column("id"), column("user"), column("Total")],
    "sales.items": [column("price")],
    '"Odd ""name"""': [column("x")],
  },
  details: {},
};

// names returns what is suggested where "|" is in a statement, or undefined for nothing.
function names(marked: string, isAsked = true): string[] | undefined {
  const at = marked.indexOf("|");
  return suggest(marked.replace("|", ""), at, schema, isAsked)?.list.map(({ text }) => text);
}

test("a name is quoted if PostgreSQL would read it in another way", () => {
  expect(sqlName("city_2")).toBe("city_2");
  expect(sqlName("Total")).toBe('"Total"');
  expect(sqlName("user")).toBe('"user"');
  expect(sqlName('a"b')).toBe('"a""b"');
  expect(sqlName("2nd")).toBe('"2nd"');
  expect(isKeyword("SELECT")).toBe(true);
  expect(isKeyword("email")).toBe(false);
});

test.each(["SELECT * FROM |", "SELECT * FROM us|", "SELECT * FROM users JOIN |", "INSERT INTO |", "UPDATE |"])(
  "in %j the tables fit",
  (marked) => {
    expect(names(marked)).toEqual(schema.tables);
  },
);

test.each([
  ["SELECT | FROM users", ["id", "email", "users"]],
  ["SELECT | FROM orders o", ["id", '"user"', '"Total"', "o"]],
  ["SELECT o.| FROM users u JOIN orders AS o ON true", ["id", '"user"', '"Total"']],
  ["SELECT * FROM users WHERE |", ["id", "email", "users"]],
  ["SELECT * FROM sales.|", ["items"]],
  ["SELECT i.| FROM sales.items i", ["price"]],
  ["SELECT | FROM users -- FROM orders", ["id", "email", "users"]],
  ["SELECT 'FROM orders', | FROM users", ["id", "email", "users"]],
  ['SELECT | FROM "Odd ""name"""', ["x", '"Odd ""name"""']],
  ["WITH recent AS (SELECT 1) SELECT * FROM |", ["recent", ...schema.tables]],
  ["SELECT * FROM orders; SELECT | FROM users", ["id", "email", "users"]],
  ["SELECT * FROM users WHERE id IN (SELECT id FROM orders) AND |", ["id", "email", "users"]],
])("in %j the columns and tables of the statement fit", (marked, wanted) => {
  expect(names(marked)).toEqual(wanted);
});

test("a query in parentheses sees the tables around it, its own first", () => {
  expect(names("SELECT * FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE |)")).toEqual([
    ...["id", '"user"', '"Total"', "id", "email"],
    ...["o", "u"],
  ]);
  expect(names("SELECT | FROM users WHERE id IN (SELECT id FROM orders)")).toEqual(["id", "email", "users"]);
});

test("columns of several tables say whose they are, and masked ones that they are", () => {
  const found = suggest("SELECT  FROM users u, orders o", 7, schema, true)!.list;
  expect(found[0]).toMatchObject({ text: "id", detail: "u, text" });
  expect(found[1]).toMatchObject({ text: "email", detail: "u, text, masked", info: expect.stringContaining("***") });
});

test.each(["SELECT 'a|'", "SELECT 1 -- |", "SELECT * FROM users u|", "SELECT x.| FROM users"])(
  "in %j no name fits",
  (marked) => {
    expect(names(marked)).toBeUndefined();
  },
);

test("who has typed nothing that calls for a name gets none, unless asked", () => {
  expect(names("|", false)).toBeUndefined();
  expect(names("SELECT |", false)).toBeUndefined();
  expect(names("SELECT em| FROM users", false)).toContain("email");
  expect(names("SELECT from|", false)).toBeUndefined();
});

test("a suggestion replaces the name that is being typed, with its quote", () => {
  expect(suggest('SELECT "To FROM orders', 10, schema, true)?.from).toBe(7);
  expect(suggest('SELECT \\"To', 11, schema, true)?.from).toBe(7); // in a string of Python
  expect(suggest("SELECT em FROM users", 9, schema, true)?.from).toBe(7);
});
