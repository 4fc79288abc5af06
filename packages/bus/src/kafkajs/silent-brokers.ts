import { createRequire } from "node:module";
import type { Socket } from "node:net";
import kafkajs from "kafkajs";

/** The parts of kafkajs that its types leave out. */
type SocketRequest = {
  readonly entry: { readonly apiKey: number; readonly apiName: string };
  readonly correlationId: number;
  /** Milliseconds. */
  requestTimeout: number;
  /** Called again and again from then on. */
  timeoutRequest(): void;
};
type RequestQueue = {
  readonly inflight: ReadonlyMap<number, SocketRequest>;
  /** `requestTimeout` in milliseconds, which only lengthens that of the client. */
  createSocketRequest(pushed: { readonly requestTimeout: number | null }): SocketRequest;
};
type Connection = {
  /** Host and port. */
  readonly broker: string;
  readonly requestQueue: RequestQueue;
  /** That of the last `connect`. */
  readonly socket: Socket;
  isConnected(): boolean;
  connect(): Promise<unknown>;
  send(request: object): Promise<unknown>;
};
type ApiVersions = { protocol(version: { version: number }): () => object };

const require = createRequire(import.meta.url);
const { prototype } = require("kafkajs/src/network/connection.js") as { prototype: Connection };
const API_KEYS = require("kafkajs/src/protocol/requests/apiKeys.js") as Readonly<Record<string, number>>;
const apiVersions = require("kafkajs/src/protocol/requests/apiVersions/index.js") as ApiVersions;

/** What a broker answers at once, by its name. Others wait for members, replicas, messages or disks. */
const PROMPT: ReadonlySet<number | undefined> = new Set(
  [
    "ApiVersions",
    "SaslHandshake",
    "Metadata",
    "GroupCoordinator",
    "Heartbeat",
    "LeaveGroup",
    "OffsetFetch",
    "OffsetCommit",
  ].map((name) => API_KEYS[name]),
);

/** Milliseconds. */
type Times = {
  /** How long a broker may take for what it answers at once. */
  readonly promptMs: number;
  /** As long as this a broker that was silent is not asked. */
  readonly silentMs: number;
  /** How long it may then take for its first answer. */
  readonly probeMs: number;
};
/** `promptMs` is twice as long as a broker waits for replicas before it refuses to commit offsets. */
const TIMES: Times = { promptMs: 10_000, silentMs: 5_000, probeMs: 2_000 };

/**
 * Breaks the connections of this process to a broker that does not answer in time what it answers at once, and makes
 * new ones only when it answers again, so that kafkajs 2.2.4 takes it for a broker that is gone and asks others. By
 * itself it gives up the request alone, and goes on to ask a broker that hangs but whose system takes connections, at
 * every new start the same. Another request breaks its own connection. A second call does nothing.
 */
export const leaveSilentBrokers = ({ promptMs, silentMs, probeMs }: Times = TIMES): void => {
  const { connect } = prototype;
  if (connect.name === "connectUnlessSilent") return;
  /** By broker that was silent: from when on it is asked again. */
  const silentUntil = new Map<string, number>();
  const connections = new Map<string, Set<Connection>>();

  const breakOff = (connection: Connection, reason: string): void => {
    if (connection.isConnected()) connection.socket.destroy(new Error(reason));
  };
  const leave = (connection: Connection, reason: string): void => {
    const { broker } = connection;
    silentUntil.set(broker, performance.now() + silentMs);
    for (const one of new Set(connections.get(broker)).add(connection)) breakOff(one, reason);
  };
  /** What waits for replicas may be late although the broker is well: the next connection shows it. */
  const doubt = (connection: Connection, reason: string): void => {
    const { broker } = connection;
    if (!silentUntil.has(broker)) silentUntil.set(broker, 0);
    breakOff(connection, reason);
  };

  const watched = new WeakSet<Connection>();
  const watchRequests = (connection: Connection): void => {
    if (watched.has(connection)) return;
    watched.add(connection);
    const { requestQueue } = connection;
    const create = requestQueue.createSocketRequest;
    requestQueue.createSocketRequest = (pushed) => {
      const request = create.call(requestQueue, pushed);
      const { apiKey, apiName } = request.entry;
      const isPrompt = PROMPT.has(apiKey);
      if (isPrompt) {
        request.requestTimeout = Math.min(
          request.requestTimeout,
          promptMs,
          pushed.requestTimeout ?? promptMs,
        );
      }
      request.timeoutRequest = () => {
        // After a pause of this process the answer may already be there, unread.
        setImmediate(() => {
          if (requestQueue.inflight.get(request.correlationId) !== request) return;
          const giveUp = isPrompt ? leave : doubt;
          giveUp(connection, `no answer to ${apiName} in ${request.requestTimeout} ms`);
        });
      };
      return request;
    };
  };

  const remember = (connection: Connection): void => {
    const { broker, socket } = connection;
    const open = connections.get(broker) ?? new Set();
    connections.set(broker, open.add(connection));
    socket.once("close", () => {
      if (connection.socket !== socket) return;
      open.delete(connection);
      if (open.size === 0 && connections.get(broker) === open) connections.delete(broker);
    });
  };

  const open = async (connection: Connection): Promise<true> => {
    if (connection.isConnected()) return true;
    const { broker } = connection;
    const until = silentUntil.get(broker);
    if (until !== undefined) {
      const now = performance.now();
      if (now < until) throw new kafkajs.KafkaJSConnectionError(`${broker} is silent`, { broker });
      // Others need not wait for the answer.
      silentUntil.set(broker, now + silentMs);
    }
    watchRequests(connection);
    await connect.call(connection);
    remember(connection);
    if (until === undefined) return true;
    await connection.send({ ...apiVersions.protocol({ version: 0 })(), requestTimeout: probeMs });
    silentUntil.delete(broker);
    return true;
  };

  const opening = new WeakMap<Connection, Promise<true>>();
  // One socket for all that wait: kafkajs would make one for each, and leave all but the last open.
  prototype.connect = function connectUnlessSilent() {
    const opened = opening.get(this) ?? open(this).finally(() => opening.delete(this));
    opening.set(this, opened);
    return opened;
  };
};
