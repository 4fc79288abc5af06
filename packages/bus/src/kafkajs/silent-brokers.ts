import type { Socket } from "node:net";
import kafkajs from "kafkajs";
import { internals } from "./internals.ts";

/** The parts of kafkajs that its types leave out. */
type Connection = {
  readonly host: string;
  readonly port: number;
  /** Host and port. */
  readonly broker: string;
  readonly ssl: unknown;
  readonly socketFactory: (options: {
    readonly host: string;
    readonly port: number;
    readonly ssl: unknown;
    readonly onConnect: () => void;
  }) => Socket;
  /** That of the last `connect`. */
  readonly socket: Socket | undefined;
  /** Requests without an answer, the oldest first. `sentAt` in ms since the epoch. */
  /** Of a login without a request of its own; the next bytes are its answer. */
  readonly authHandlers: { onError(): void } | undefined;
  /** What has come of an answer that is not whole. */
  chunks: Buffer[];
  bytesBuffered: number;
  bytesNeeded: number;
  readonly requestQueue: { readonly inflight: ReadonlyMap<number, { readonly sentAt: number | null }> };
  isConnected(): boolean;
  connect(): Promise<unknown>;
  disconnect(): Promise<unknown>;
  rejectRequests(error: Error): void;
};

/** Milliseconds. */
type Times = {
  /** How often connections are looked at, and how long a request waits before its broker is asked. */
  readonly lookMs: number;
  /** How long the broker then has to answer. */
  readonly answerMs: number;
};
const TIMES: Times = { lookMs: 4_000, answerMs: 8_000 };

/** The request ApiVersions, version 0, which needs no login, with its length in front. */
const QUESTION = Buffer.from("\0\0\0\x0a\0\x12\0\0\0\0\0\0\0\0", "latin1");

/** The time for an answer passes in so many steps, so that a pause of this process counts as one. */
const STEPS = 8;

/** True when the broker neither answers on a new connection nor refuses it. */
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
    // What is gone or refuses does not hang: kafkajs finds out by itself.
    socket.on("error", () => end(false));
    socket.once("close", () => end(false));
  });

/** kafkajs hears only of ends by the broker: otherwise the connection counts as open for ever. */
const endWith = (connection: Connection, socket: Socket): void => {
  socket.once("close", () => {
    if (connection.socket !== socket) return;
    const { broker } = connection;
    connection.authHandlers?.onError();
    connection.rejectRequests(new kafkajs.KafkaJSConnectionError("the connection is closed", { broker }));
    void connection.disconnect();
  });
};

/** The length of an answer comes in front of it. */
const LENGTH_BYTES = 4;

/**
 * Detaches the former socket: its late events would end the next one, its half answer corrupt the next
 * answers.
 */
const forgetSocket = (connection: Connection): void => {
  connection.socket?.destroy();
  Object.assign(connection, { chunks: [], bytesBuffered: 0, bytesNeeded: LENGTH_BYTES });
};

/**
 * Makes kafkajs treat a hanging broker like one that refuses connections. A slow request is checked on a
 * connection of its own; all connections to the broker end only if that fails.
 */
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
      // A late event of this socket would end the connection that comes after it.
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
  // One socket for all that wait: kafkajs makes one for each, and knows the last alone.
  prototype.connect = function connectUnlessSilent() {
    const opened = opening.get(this) ?? open(this).finally(() => opening.delete(this));
    opening.set(this, opened);
    return opened;
  };
};
