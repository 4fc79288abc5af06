import { expect, it } from "vitest";
import { createLogger, ServiceError } from "./index.ts";

it("writes one JSON line with time, level, service and the error's code, and no secret", () => {
  const lines: string[] = [];
  const log = createLogger({
    service: "ingest",
    level: "info",
    destination: { write: (line: string) => lines.push(line) },
  });
  log.debug("not this");
  log.error({ err: new ServiceError("away", "gone", { retryable: true }), sasl: { password: "x1y2" } }, "no");
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0] ?? "") as Record<string, unknown>;
  expect(line).toMatchObject({
    level: "error",
    service: "ingest",
    msg: "no",
    err: { code: "away", retryable: true },
  });
  expect(line["time"]).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  const refused = Object.assign(new Error("WRONGPASS"), { command: { name: "auth", args: ["x1y2"] } });
  log.error({ err: refused }, "no");
  expect(lines[1]).toContain("WRONGPASS");
  expect(lines.join()).not.toContain("x1y2");
});

it("lets no text of others act on a terminal or end a line", () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLogger({ service: "ingest", level: "info", destination });
  const text = "\u009b2J\u0085\u2028\u2029\u202e\u200b\u007f\u001b[2J\u{e0041}é😀";
  log.info({ client: text, [text]: [{ text }] }, text);
  log.child({ topic: text }).warn({ err: new Error(text) }, "no");
  for (const line of lines) expect(line).toMatch(/^[ -~é😀]+\n$/u);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ msg: text, client: text, [text]: [{ text }] });
  expect(JSON.parse(lines[1] ?? "")).toMatchObject({ topic: text, err: { message: text } });
});
