import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./settings.ts";

export const OPS_FUNCTION = /^ {3}ops\(\) \{\n[\s\S]*?^ {3}\}\n/m;

export const guideBlocks = (
  heading: string,
  given: { readonly namespace: string; readonly registry: string },
): string[] => {
  const page = readFileSync(join(ROOT, "docs/installation.md"), "utf8");
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const [own = ""] = section.split("\n## ");
  return Array.from(own.matchAll(/^ *```sh\n(.*?)^ *```$/gms), ([, block = ""]) =>
    block
      .replaceAll(/(?<=(?:-n|namespace) )conversation-export\b(?!-)/g, given.namespace)
      .replaceAll("registry.example.com/platform", given.registry),
  );
};
