import { setTimeout as sleep } from "node:timers/promises";

const PATIENCE_MS = 30_000;

/** A 503 with `Retry-After` is asked again, as readers should: a busy machine answers so. */
export const fetchPatiently = async (
  url: string,
  init: RequestInit,
  onRefusal: (said: string) => void = console.log,
): Promise<Response> => {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await fetch(url, init);
    const seconds = answer.headers.get("retry-after");
    if (answer.status !== 503 || seconds === null || performance.now() > until) return answer;
    onRefusal(`asked again after ${seconds} s: ${answer.status} ${await answer.text()}`);
    await sleep(Number(seconds) * 1_000);
  }
};
