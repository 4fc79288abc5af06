import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/security-controls.md"), "utf8");
const rows = page
  .split("\n")
  .filter((line) => /^\| (API|V)\d+ /.test(line))
  .map((line) => line.split(" | "));

const IN_CODE = /`([^`]+)`/g;
const namesIn = (cell: string): string[] => [...cell.matchAll(IN_CODE)].map(([, name = ""]) => name);

it("names every risk of the API Security Top 10 and every chapter of the ASVS", () => {
  const named = rows.map(([risk = ""]) => /(?:API|V)\d+/.exec(risk)?.[0]);
  const api = Array.from({ length: 10 }, (_, index) => `API${index + 1}`);
  expect(named).toEqual([...api, ...Array.from({ length: 17 }, (_, index) => `V${index + 1}`)]);
});

it("names tests and places that exist", () => {
  const files = ["packages", "services", "deploy", "test"].flatMap((folder) =>
    globSync(`${folder}/**/*.test.ts`, { cwd: ROOT, exclude: (name) => name === "node_modules" }),
  );
  const tests = new Set(files.map((file) => basename(file, ".test.ts")));
  const inTests = rows.flatMap((cells) => namesIn(cells.at(-1) ?? ""));
  expect(inTests.length).toBeGreaterThan(40);
  expect(inTests.filter((name) => !tests.has(name))).toEqual([]);
  const places = rows.filter((cells) => cells.length === 4).flatMap((cells) => namesIn(cells[2] ?? ""));
  expect(places.filter((place) => !existsSync(join(ROOT, place)))).toEqual([]);
});
