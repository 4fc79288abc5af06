import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";

/** Of a statement that is caught: not sent yet, sent and not answered, or done while its sender does not know. */
export const SIDES = ["before", "during", "after"] as const;
type Side = (typeof SIDES)[number];

/** The statement of a job at which it is caught: its how many-th from the arming on, from 1. */
export type CatchPoint = { readonly nth: number; readonly side: Side };

/**
 * Stands between a service and ClickHouse, knows the statements of each job by their text, and catches jobs at
 * statements: a job that is caught waits there, in the middle of its work.
 */
export type StatementGate<Job extends string> = {
  /** The address of ClickHouse with the gate in the place of the server. */
  through(url: string): string;
  /** How many statements of each job have come since the gate was made, or since `arm`. */
  seen(): ReadonlyMap<Job, number>;
  /** Counts from 0 and catches each of these jobs once. */
  arm(points: ReadonlyMap<Job, CatchPoint>): void;
  /** Jobs that have been caught since `arm`. */
  caught(): ReadonlySet<Job>;
  /** Sends what was caught `during` itself on its way; the caught ones on the other sides go on waiting. */
  spring(): Promise<void>;
  /** Breaks the connections of what is caught, as the end of one of the two sides does. */
  breakCaught(): void;
  /** Lets everything that is caught go on. */
  release(): void;
  close(): Promise<void>;
};

type Caught<Job> = {
  readonly job: Job;
  readonly side: Side;
  readonly response: ServerResponse;
  readonly go: () => void;
};

/** So much of a body is searched. */
const SEARCHED_BYTES = 65_536;

const textOf = (incoming: IncomingMessage, body: Buffer): string => {
  const { searchParams } = new URL(incoming.url ?? "/", "http://gate");
  const values = [...searchParams].map(([name, value]) => `${name}=${value}`);
  return [...values, body.subarray(0, SEARCHED_BYTES).toString()].join("\n");
};

/** `target`: where ClickHouse is; `jobOf`: whose statement a text is. */
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
    // What its sender has given up ClickHouse is to see as given up.
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
      // Its sender may be gone before all of it has come.
      const body = await buffer(incoming).catch(() => null);
      if (body === null) return;
      const job = deps.jobOf(textOf(incoming, body));
      const point = catchPointOf(job);
      if (job !== null && point !== null && point.side !== "after") await hold(job, point.side, response);
      if (response.destroyed) return;
      forward(incoming, response, body, job, point?.side === "after");
    })();
  });
  // Longer than its senders keep a connection.
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
    through: (url) => {
      const changed = new URL(url);
      changed.hostname = "127.0.0.1";
      changed.port = String(port);
      return changed.toString();
    },
    seen: () => seen,
    arm: (next) => {
      points = next;
      seen = new Map();
      caught.clear();
    },
    caught: () => caught,
    spring: async () => {
      letGo(({ side }) => side === "during");
      // Until they have come as far as their forwarding.
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
