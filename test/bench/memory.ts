import { peakMegabytes } from "../system/process-memory.ts";
import { drain, open } from "./answers.ts";
import { at, pagePath, type Reading } from "./reading.ts";
import { plainResult, type Result } from "./report.ts";
import { LATE } from "./window-data.ts";

const PAGES_AT_ONCE = 8;
const TIMES = 3;

export const benchMemory = async ({ system, keys }: Reading): Promise<Result[]> => {
  const { process: api, apiUrl } = await system.anotherApi({
    LOG_LEVEL: "warn",
    MAX_EVENT_LOOP_DELAY_MS: "0",
    MAX_PAGES_PER_CLIENT: String(PAGES_AT_ONCE),
  });
  const idle = peakMegabytes(api.pid);
  const url = `${apiUrl}${pagePath("created", at(0.5), 10_000)}`;
  for (let round = 0; round < TIMES; round += 1) {
    const page = async () => drain(await open(url, { authorization: `Bearer ${keys[LATE]}` }));
    await Promise.all(Array.from({ length: PAGES_AT_ONCE }, page));
  }
  const peak = peakMegabytes(api.pid);
  await api.kill("SIGTERM");
  return [plainResult("memory", "MB", peak, idle)];
};
