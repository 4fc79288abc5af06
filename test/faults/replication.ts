import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "../system/listen.ts";
import { readPassing } from "./pass-on.ts";
import { throughPort } from "./through-port.ts";

/** Copies rows between two servers with a delay, by part. Merges must be stopped; deletions are not copied. */
export type Replication = {
  /** A proxy that answers an INSERT when both servers have its rows, as with `insert_quorum`. */
  through(url: string): string;
  complete(): Promise<void>;
  pause(): Promise<void>;
  resume(): void;
  close(): Promise<void>;
};

/** `hash`: equal for parts with the same rows. */
type Part = { readonly table: string; readonly name: string; readonly hash: string };

const PARTS = `SELECT table, name, hash_of_all_files AS hash FROM system.parts
  WHERE active AND database = currentDatabase() AND NOT startsWith(table, 'schema_') FORMAT JSONEachRow`;
const IDLE_MS = 20;
const INSERT = /[?&]query=\s*INSERT|^\S* \s*INSERT/;

const keyOf = ({ table, hash }: Part): string => `${table} ${hash}`;

export const startReplication = async (deps: {
  readonly servers: readonly [string, string];
  /** Delay of the next parts, ms. */
  readonly delayOf: () => number;
}): Promise<Replication> => {
  const [first, second] = deps.servers;
  let rounds = 0;
  let isClosed = false;
  let turn = Promise.withResolvers<void>();
  /** `rests`: no part is on its way. */
  type Pause = { readonly rests: () => void; readonly over: Promise<void>; readonly end: () => void };
  const state: { pause: Pause | null } = { pause: null };

  const ask = async (url: string, sql: string, body: Buffer | null = null): Promise<Buffer> => {
    const { origin, pathname, username, password } = new URL(url);
    // Copied rows may be old.
    const query = new URLSearchParams({ database: pathname.slice(1), query: sql, log_comment: "stamped" });
    const answer = await fetch(`${origin}/?${query.toString()}`, {
      method: "POST",
      body: body ?? "",
      headers: { "x-clickhouse-user": username, "x-clickhouse-key": decodeURIComponent(password) },
    });
    const content = Buffer.from(await answer.arrayBuffer());
    if (!answer.ok) throw new Error(`${sql.slice(0, 200)}: ${content.toString().slice(0, 2_000)}`);
    return content;
  };

  const partsOf = async (url: string): Promise<Part[]> =>
    (await ask(url, PARTS))
      .toString()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Part);

  const copy = async (from: string, to: string, { table, name }: Part): Promise<void> => {
    const rows = await ask(from, `SELECT * FROM ${table} WHERE _part = '${name}' FORMAT Native`);
    await ask(to, `INSERT INTO ${table} FORMAT Native`, rows);
  };

  const copyMissing = async (from: string, has: readonly Part[], to: string, had: readonly Part[]) => {
    const there = new Set(had.map(keyOf));
    for (const part of has) if (!there.has(keyOf(part))) await copy(from, to, part);
  };

  const round = async (): Promise<void> => {
    const [one, other] = await Promise.all([partsOf(first), partsOf(second)]);
    await sleep(deps.delayOf());
    await copyMissing(first, one, second, other);
    await copyMissing(second, other, first, one);
  };

  const replicating = (async () => {
    while (!isClosed) {
      state.pause?.rests();
      await state.pause?.over;
      await round();
      rounds += 1;
      const ended = turn;
      turn = Promise.withResolvers();
      ended.resolve();
      await sleep(IDLE_MS);
    }
  })();
  replicating.catch(() => undefined);

  const complete = async (): Promise<void> => {
    // The current round may have looked for parts before now.
    const wanted = rounds + 2;
    while (rounds < wanted && !isClosed) await Promise.race([turn.promise, replicating]);
  };

  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const passing = await readPassing(request);
    const answer = await passing.send(new URL(first).origin);
    if (INSERT.test(passing.statement)) await complete();
    answer.to(response);
  };
  const server = createServer((request, response) => {
    forward(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end(String(error));
    });
  });
  // Longer than clients keep an idle connection.
  server.keepAliveTimeout = 60_000;
  const { port, close } = await listen(server);

  const resume = (): void => {
    state.pause?.end();
    state.pause = null;
  };

  return {
    through: (url) => throughPort(url, port),
    complete,
    pause: async () => {
      const [rests, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      state.pause = { rests: rests.resolve, over: over.promise, end: over.resolve };
      await Promise.race([rests.promise, replicating]);
    },
    resume,
    close: async () => {
      isClosed = true;
      resume();
      await close();
      await replicating;
    },
  };
};
