import { expect } from "vitest";
import { until } from "./until.ts";

export type ErasureRequest = {
  status(): Promise<string>;
  /** @throws Error when it fails */
  completed(quietMs: number): Promise<void>;
};

export const requestErasure = async (
  apiUrl: string,
  key: string,
  subject: Readonly<Record<string, unknown>>,
  ask: (url: string, init: RequestInit) => Promise<Response> = fetch,
): Promise<ErasureRequest> => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ type: "ERASURE", ...subject });
  const answer = await fetch(`${apiUrl}/v2/data-subject-request`, { method: "POST", headers, body });
  expect(answer.status).toBe(200);
  const address = new URL(answer.headers.get("location") ?? "", apiUrl).href;
  const status = async (): Promise<string> => {
    const asked = await ask(address, { headers });
    expect(asked.status).toBe(200);
    return ((await asked.json()) as { status: string }).status;
  };
  return {
    status,
    completed: (quietMs) =>
      until("the request is completed", quietMs, async () => {
        const found = await status();
        expect(found).not.toBe("failed");
        return found === "completed";
      }),
  };
};
