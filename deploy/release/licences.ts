import type { BillOfMaterials, Component } from "./bill-of-materials.ts";

/** They require only a notice. */
const PERMISSIVE: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "Python-2.0",
  "Unlicense",
  "Zlib",
]);

const isPermissive = (expression: string): boolean =>
  expression
    .replaceAll(/[()]/g, "")
    .split(" OR ")
    .some((all) => all.split(" AND ").every((licence) => PERMISSIVE.has(licence.trim())));

const licencesOf = ({ licenses = [] }: Component): string[] =>
  licenses.map(({ expression, license }) => expression ?? license?.id ?? license?.name ?? "unknown");

export const licenceProblems = ({ components }: BillOfMaterials): string[] =>
  components.flatMap((component) => {
    const licences = licencesOf(component);
    if (licences.length > 0 && licences.every(isPermissive)) return [];
    return [`${component.name}@${component.version}: ${licences.join(", ") || "no licence"}`];
  });
