import type { IncomingMessage, ServerResponse } from "node:http";

export type ProcessStatus = { readonly name: string; readonly pid: number | null; readonly address: string };

export type SupervisorStatus = {
  readonly phase: "starting" | "ready" | "stopping";
  readonly processes: readonly ProcessStatus[];
};

export type Controls = {
  readonly status: () => SupervisorStatus;
  readonly restart: (name: string) => Promise<void>;
  readonly log: (line: string) => void;
};

export async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  controls: Controls,
): Promise<void> {
  const reply = (code: number, body: unknown): void => {
    response.writeHead(code, { "content-type": "application/json", connection: "close" });
    response.end(JSON.stringify(body));
  };
  const asked = `${request.method} ${request.url}`;
  const restarted = /^POST \/restart\/([\w-]+)$/.exec(asked)?.[1];
  try {
    if (restarted !== undefined) await controls.restart(restarted);
    else if (asked !== "GET /status") return reply(404, { error: `unknown request ${asked}` });
    reply(200, controls.status());
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    controls.log(message);
    reply(500, { error: message });
  }
}
