import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { Dialog, Turn } from "../script.ts";

type Utterance = { speaker: string; text: string; api_calls?: { call: string }[] };
type Line = { vertical: string; utterances: Utterance[] };

/** Gzipped JSON lines. */
export function loadDialogs(path: string): Dialog[] {
  const lines = gunzipSync(readFileSync(path)).toString("utf8").split("\n");
  const dialogs: Dialog[] = [];
  for (const line of lines) {
    if (line === "") continue;
    const { vertical, utterances } = JSON.parse(line) as Line;
    const turns = utterances.map((utterance): Turn => {
      return { speaker: utterance.speaker === "user" ? "chatter" : "bot", text: utterance.text };
    });
    const tools = utterances.flatMap((utterance) => (utterance.api_calls ?? []).map((call) => call.call));
    if (turns.length > 0) dialogs.push({ topic: vertical, turns, tools });
  }
  return dialogs;
}
