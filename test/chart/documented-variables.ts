import { readFileSync } from "node:fs";

const PAGE = new URL("../../docs/configuration.md", import.meta.url);

export const documentedVariables = (service: string): string[] => {
  const section = readFileSync(PAGE, "utf8")
    .split(/^## /m)
    .find((part) => part.startsWith(`${service}\n`));
  return [...(section ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(([, name = ""]) => name);
};
