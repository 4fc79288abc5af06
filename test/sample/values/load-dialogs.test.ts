import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { loadDialogs } from "./load-dialogs.ts";
import { createSample } from "../sample.ts";

test("real dialogs replace the sample's own texts", () => {
  const folder = mkdtempSync(join(tmpdir(), "dialogs-"));
  try {
    const path = join(folder, "dialogs.jsonl.gz");
    const utterances = [
      { speaker: "user", text: "one chai, please", api_calls: [{ call: "add_order_item", request: "{}" }] },
      { speaker: "assistant", text: "here you are ☕" },
    ];
    writeFileSync(path, gzipSync(`${JSON.stringify({ vertical: "Coffee", utterances })}\n`));
    const texts = loadDialogs(path);
    expect(texts).toEqual([
      {
        topic: "Coffee",
        turns: [
          { speaker: "chatter", text: "one chai, please" },
          { speaker: "bot", text: "here you are ☕" },
        ],
        tools: ["add_order_item"],
      },
    ]);
    const sample = createSample({ texts, conversations: 50, endUsers: 0, nonstandardShare: 0 });
    expect(sample.totals().records).toEqual({ conversation: 50, message: 100, end_user: 0 });
    const all = [...sample].map((event) => event.value?.toString("utf8") ?? "").join("\n");
    expect(all).toContain('"body":"one chai, please"');
    expect(all).toContain('"tool_name":"add_order_item"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
