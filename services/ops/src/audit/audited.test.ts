import { Command } from "commander";
import { expect, it } from "vitest";
import { argumentsOf } from "./audited.ts";

it("notes what was given, without who is to be erased", async () => {
  let noted: Record<string, unknown> = {};
  const program = new Command("export-ops");
  program
    .command("erase")
    .argument("[id]")
    .option("--client <id>")
    .option("--email <address>")
    .option("--chatter-id <id>")
    .option("--limit <count>", "", "10")
    .action((_id, _options, command: Command) => {
      noted = argumentsOf(command);
    });
  const words = ["erase", "7-0", "--client", "acme", "--email", "jane@example.com", "--chatter-id", "5f1c"];
  await program.parseAsync(words, { from: "user" });
  expect(noted).toEqual({
    arguments: ["7-0"],
    client: "acme",
    email: "(a person)",
    chatterId: "(a person)",
  });
  expect(JSON.stringify(noted)).not.toMatch(/jane|5f1c/);
});
