import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { listen } from "../system/listen.ts";
import { throughPort } from "./through-port.ts";

/** before: not sent yet; during: not answered yet; after: done, but the sender does not know. */
export const SIDES = ["before", "during", "after"] as const;
type Side = (typeof SIDES)[number];

/** `nth` counts from 1 since `arm`. */
export type CatchPoint = { readonly nth: number; readonly side: Side };

/** A proxy that recognizes a job by its statement and keeps it waiting for the answer. */
export type StatementGate<Job extends string> = {
  through(url: string): string;
  seen(): ReadonlyMap<Job, number>;
  /** Resets the counts and catches each job once. */
  arm(points: ReadonlyMap<Job, CatchPoint>): void;
  caught(): ReadonlySet<Job>;
  /** Sends the statements caught `during`; the others go on waiting. */
  spring(): Promise<void>;
  /** As a crash on either side would. */
  breakCaught(): void;
  release(): void;
  close(): Promise<void>;
};

type Caught<Job> = {
  readonly job: Job;
  readonly side: Side;
  readonly response: ServerResponse;
  readonly go: () => void;
};

/** Names of statements are searched for only in the beginning of a body. */
const SEARCHED_BYTES = 65_536;

const textOf = (incoming: IncomingMessage, body: Buffer): string => {
  const { searchParams } = new URL(incoming.url ?? "/", "http://gate");
  const values = [...searchParams].map(([name, value]) => `${name}=${value}`);
  return [...values, body.subarray(0, SEARCHED_BYTES).toString()].join("\n");
};

export const startStatementGate = async <Job extends string>(deps: {
  readonly target: { readonly host: string; readonly port: number };
  readonly jobOf: (text: string) => Job | null;
}): Promise<StatementGate<Job>> => {
  let seen = new Map<Job, number>();
  let points: ReadonlyMap<Job, CatchPoint> = new Map();
  let held: Caught<Job>[] = [];
  const caught = new Set<Job>();
  const onWay = new Set<Promise<void>>();

  const hold = (job: Job, side: Side, response: ServerResponse): Promise<void> =>
    new Promise((resolve) => {
      held.push({ job, side, response, go: resolve });
      caught.add(job);
    });

  const catchPointOf = (job: Job | null): CatchPoint | null => {
    if (job === null) return null;
    const count = (seen.get(job) ?? 0) + 1;
    seen.set(job, count);
    const point = points.get(job);
    return point?.nth === count && !caught.has(job) ? point : null;
  };

  const forward = (
    incoming: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
    job: Job | null,
    afterwards: boolean,
  ) => {
    const sent = request({
      ...deps.target,
      method: incoming.method,
      path: incoming.url,
      headers: { ...incoming.headers, host: `${deps.target.host}:${deps.target.port}`, connection: "close" },
      agent: false,
    });
    // ClickHouse must notice when the sender gives up.
    response.once("close", () => sent.destroy());
    sent.once("error", () => response.destroy());
    sent.once("response", (answer) => {
      void (async () => {
        if (afterwards && job !== null) await hold(job, "after", response);
        if (response.destroyed) return;
        const { connection: _, "keep-alive": __, ...headers } = answer.headers;
        response.writeHead(answer.statusCode ?? 502, headers);
        answer.once("error", () => response.destroy());
        answer.pipe(response);
      })();
    });
    const written = new Promise<void>((resolve) => {
      sent.once("close", resolve);
      sent.end(body, resolve);
    });
    onWay.add(written);
    void written.then(() => onWay.delete(written));
  };

  const server = createServer((incoming, response) => {
    void (async () => {
      // The sender may leave before its body is complete.
      const body = await buffer(incoming).catch(() => null);
      if (body === null) return;
      const job = deps.jobOf(textOf(incoming, body));
      const point = catchPointOf(job);
      if (job !== null && point !== null && point.side !== "after") await hold(job, point.side, response);
      if (response.destroyed) return;
      forward(incoming, response, body, job, point?.side === "after");
    })();
  });
  // Longer than clients keep an idle connection.
  server.keepAliveTimeout = 60_000;
  server.requestTimeout = 0;
  const { port, close } = await listen(server);

  const letGo = (which: (one: Caught<Job>) => boolean): void => {
    const going = held.filter(which);
    held = held.filter((one) => !which(one));
    for (const one of going) one.go();
  };

  return {
    through: (url) => throughPort(url, port),
    seen: () => seen,
    arm: (next) => {
      points = next;
      seen = new Map();
      caught.clear();
    },
    caught: () => caught,
    spring: async () => {
      letGo(({ side }) => side === "during");
      // Gives them a turn to start forwarding.
      await turn();
      await Promise.all(onWay);
    },
    breakCaught: () => {
      for (const { response } of held) response.destroy();
      letGo(() => true);
    },
    release: () => letGo(() => true),
    close: async () => {
      for (const { response } of held) response.destroy();
      letGo(() => true);
      await close();
    },
  };
};
