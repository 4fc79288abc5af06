import { join } from "node:path";
import { expect, it } from "vitest";
import { renderCommandLinePage } from "./command-line-page.fixture.ts";

const PAGE = join(import.meta.dirname, "../../../docs/command-line.md");

it("docs/command-line.md is as make generate writes it", async () => {
  await expect(await renderCommandLinePage()).toMatchFileSnapshot(PAGE);
});
