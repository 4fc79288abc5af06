import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { usePlace } from "./command.fixture.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const place = usePlace();

const command = async (full: "stdout" | "stderr", args: readonly string[], key = "k") => {
  const device = openSync("/dev/full", "w");
  const child = spawn(process.execPath, [MAIN, ...args, "--list", "conversations"], {
    env: { PATH: process.env["PATH"], EXPORT_API_URL: place.service.url, EXPORT_API_KEY: key },
    stdio: ["ignore", full === "stdout" ? device : "pipe", full === "stderr" ? device : "pipe"],
  });
  closeSync(device);
  let err = "";
  child.stderr?.on("data", (chunk: Buffer) => (err += chunk.toString()));
  child.stdout?.resume();
  const [code] = (await once(child, "close")) as [number];
  return { code, err };
};

describe.runIf(existsSync("/dev/full"))("output that nobody gets", () => {
  it("ends a pull of lines in one line, and leaves no lock", async () => {
    place.service.put("a", 1);
    const { code, err } = await command("stdout", [
      "pull",
      "--to",
      "-",
      "--state",
      join(place.root, "cursor.json"),
    ]);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^ENOSPC: [^\n]*\n$/) });
    expect(readdirSync(place.root)).toEqual(["cursor.json"]);
  });

  it("is no success when it was the result", async () => {
    place.service.put("a", 1);
    const { code, err } = await command("stdout", ["pull", "--to", place.folder()]);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/ENOSPC: [^\n]*\n$/) });
    expect(existsSync(join(place.folder(), "pull.lock"))).toBe(false);
  });

  it("keeps the exit code when errors cannot be reported", async () => {
    expect(await command("stderr", ["pull", "--to", place.folder()], "wrong")).toMatchObject({ code: 3 });
    expect(existsSync(join(place.folder(), "pull.lock"))).toBe(false);
  });
});
