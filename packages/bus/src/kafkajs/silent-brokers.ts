import type { Socket } from "node:net";
import kafkajs from "kafkajs";
import { internals } from "./internals.ts";

/** kafkajs' types leave these out. */
type Connection = {
  readonly host: string;
  readonly port: number;
  readonly broker: string;
  readonly ssl: unknown;
  readonly socketFactory: (options: {
    readonly host: string;
    readonly port: number;
    readonly ssl: unknown;
    readonly onConnect: () => void;
  }) => Socket;
  readonly socket: Socket | undefined;
  /** Set during a login that sends no request of its own: the next bytes are its answer. */
  readonly authHandlers: { onError(): void } | undefined;
  chunks: Buffer[];
  bytesBuffered: number;
  bytesNeeded: number;
  readonly requestQueue: { readonly inflight: ReadonlyMap<number, { readonly sentAt: number | null }> };
  isConnected(): boolean;
  connect(): Promise<unknown>;
  disconnect(): Promise<unknown>;
  rejectRequests(error: Error): void;
};

type Times = {
  /** Between checks, and until a request leads to a probe. */
  readonly lookMs: number;
  readonly answerMs: number;
};
const TIMES: Times = { lookMs: 4_000, answerMs: 8_000 };

/** ApiVersions, version 0, which needs no login. */
const QUESTION = Buffer.from("\0\0\0\x0a\0\x12\0\0\0\0\0\0\0\0", "latin1");

/** In steps, so that a pause of this process counts as one. */
const STEPS = 8;

const hangs = ({ socketFactory, host, port, ssl }: Connection, { answerMs }: Times): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = socketFactory({ host, port, ssl, onConnect: () => socket.write(QUESTION) });
    let steps = 0;
    const timer = setInterval(() => {
      steps += 1;
      if (steps === STEPS) end(true);
    }, answerMs / STEPS);
    const end = (isSilent: boolean): void => {
      clearInterval(timer);
      resolve(isSilent);
      socket.destroy();
    };
    socket.once("data", () => end(false));
    // It does not hang: kafkajs finds out by itself.
    socket.on("error", () => end(false));
    socket.once("close", () => end(false));
  });

/** kafkajs notices only ends by the broker. */
const endWith = (connection: Connection, socket: Socket): void => {
  socket.once("close", () => {
    if (connection.socket !== socket) return;
    const { broker } = connection;
    connection.authHandlers?.onError();
    connection.rejectRequests(new kafkajs.KafkaJSConnectionError("the connection is closed", { broker }));
    void connection.disconnect();
  });
};

const LENGTH_BYTES = 4;

/** Late events of the former socket would end the next, its half answer corrupt later ones. */
const forgetSocket = (connection: Connection): void => {
  connection.socket?.destroy();
  Object.assign(connection, { chunks: [], bytesBuffered: 0, bytesNeeded: LENGTH_BYTES });
};

/** A slow request leads to a probe; connections end only if that fails (docs/decisions/0029). */
export const leaveSilentBrokers = (times: Times = TIMES): void => {
  const { prototype } = internals("network/connection") as { prototype: Connection };
  const { connect } = prototype;
  const silent = new Set<string>();
  const asked = new Set<string>();

  const ask = async (connection: Connection): Promise<void> => {
    const { broker } = connection;
    if (asked.has(broker)) return;
    asked.add(broker);
    // If the probe fails, treat the broker as reachable.
    const isSilent = await hangs(connection, times).catch(() => false);
    asked.delete(broker);
    if (isSilent) silent.add(broker);
    else silent.delete(broker);
  };

  // Only with this code kafkajs looks for another coordinator.
  const errorOf = ({ broker }: Connection): Error =>
    new kafkajs.KafkaJSConnectionError(`${broker} is silent`, { broker, code: "ECONNREFUSED" });

  const watch = (connection: Connection, socket: Socket): void => {
    const look = async (): Promise<void> => {
      const [oldest] = connection.requestQueue.inflight.values();
      if (Date.now() - (oldest?.sentAt ?? Number.POSITIVE_INFINITY) > times.lookMs) await ask(connection);
      if (connection.socket !== socket || !connection.isConnected()) socket.destroy();
      else if (silent.has(connection.broker)) socket.destroy(errorOf(connection));
    };
    const timer = setInterval(() => void look(), times.lookMs).unref();
    socket.once("close", () => clearInterval(timer));
  };

  const open = async (connection: Connection): Promise<unknown> => {
    if (connection.isConnected()) return true;
    if (silent.has(connection.broker)) {
      void ask(connection);
      throw errorOf(connection);
    }
    const former = connection.socket;
    forgetSocket(connection);
    const opened = connect.call(connection);
    if (connection.socket !== undefined && connection.socket !== former)
      endWith(connection, connection.socket);
    try {
      await opened;
    } catch (error) {
      // Its late events would end the next connection.
      connection.socket?.destroy();
      throw error;
    }
    const { broker, socket } = connection;
    if (socket === undefined || socket.writableEnded) {
      socket?.destroy();
      const error = new kafkajs.KafkaJSConnectionError("closed while it opened", { broker });
      connection.rejectRequests(error);
      await connection.disconnect();
      throw error;
    }
    watch(connection, socket);
    return true;
  };

  const opening = new WeakMap<Connection, Promise<unknown>>();
  // kafkajs makes one socket for each caller and knows only the last.
  prototype.connect = function connectUnlessSilent() {
    const opened = opening.get(this) ?? open(this).finally(() => opening.delete(this));
    opening.set(this, opened);
    return opened;
  };
};
