import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { EXIT } from "./exit-code.ts";
import { USAGE } from "./settings.ts";

const PAGE = fileURLToPath(new URL("../../../../docs/client-command-line.md", import.meta.url));

it("docs/client-command-line.md is as make generate writes it", async () => {
  await expect(`# Command line of the client

Made from \`--help\` by \`make generate\`. How to use it: [client](client.md).

\`\`\`text
${USAGE}\`\`\`
`).toMatchFileSnapshot(PAGE);
});

it("--help names every exit code", () => {
  for (const code of Object.values(EXIT)) expect(USAGE).toMatch(new RegExp(`^  ${code} {5,}`, "m"));
});
