import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { throughPort } from "./through-port.ts";

/**
 * When a statement is caught: before it is sent, before it is answered, or after it is done and before its
 * sender knows.
 */
export const SIDES = ["before", "during", "after"] as const;
type Side = (typeof SIDES)[number];

/** Catches a job at its `nth` statement since `arm`, counted from 1. */
export type CatchPoint = { readonly nth: number; readonly side: Side };

/**
 * Stands between a service and ClickHouse, tells from the text of a statement which job sent it, and catches
 * jobs: a job that is caught waits for the answer to its statement, in the middle of its work.
 */
export type StatementGate<Job extends string> = {
  /** Replaces the host and port of a ClickHouse URL by those of the gate. */
  through(url: string): string;
  /** Number of statements of each job since the start or the last `arm`. */
  seen(): ReadonlyMap<Job, number>;
  /** Starts counting at 0 and catches each of these jobs once. */
  arm(points: ReadonlyMap<Job, CatchPoint>): void;
  /** Jobs that have been caught since `arm`. */
  caught(): ReadonlySet<Job>;
  /** Sends the statements that were caught `during`; the others go on waiting. */
  spring(): Promise<void>;
  /** Breaks the connections of caught statements, as a crash on either side would. */
  breakCaught(): void;
  /** Lets all caught statements go on. */
  release(): void;
  close(): Promise<void>;
};

type Caught<Job> = {
  readonly job: Job;
  readonly side: Side;
  readonly response: ServerResponse;
  readonly go: () => void;
};

/** Only the beginning of a body is searched for the names of statements. */
const SEARCHED_BYTES = 65_536;

const textOf = (incoming: IncomingMessage, body: Buffer): string => {
  const { searchParams } = new URL(incoming.url ?? "/", "http://gate");
  const values = [...searchParams].map(([name, value]) => `${name}=${value}`);
  return [...values, body.subarray(0, SEARCHED_BYTES).toString()].join("\n");
};

/** `target`: address of ClickHouse; `jobOf`: the job that sent a statement. */
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
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

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
      // Gives them a turn to reach their forwarding.
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
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
};
