import { createRequire } from "node:module";

/** The parts of kafkajs that its types leave out. */
type Broker = {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  readonly lookupRequest: (...request: readonly unknown[]) => unknown;
};
type BrokerPool = { findConnectedBroker(): Promise<Broker> };

/** False: it has not told which requests it knows, as when its answer came too late. */
const isReady = ({ lookupRequest }: Broker): boolean => lookupRequest.name !== "notInitializedLookup";

/**
 * Makes kafkajs 2.2.4 ask a broker for metadata only when it is ready. Its pool also hands out one whose socket is open
 * while the versions of its requests are not known yet, and one that has just taken the place of another: the question
 * then fails as if no later one could succeed. A second call does nothing.
 */
export const awaitUnreadyBrokers = (): void => {
  const require = createRequire(import.meta.url);
  const { prototype } = require("kafkajs/src/cluster/brokerPool.js") as { prototype: BrokerPool };
  const { findConnectedBroker } = prototype;
  if (findConnectedBroker.name === "findReadyBroker") return;
  prototype.findConnectedBroker = async function findReadyBroker() {
    const broker = await findConnectedBroker.call(this);
    // Waits for a connection that is being made, and does nothing when a socket is open.
    await broker.connect();
    if (isReady(broker)) return broker;
    await broker.disconnect();
    await broker.connect();
    return broker;
  };
};
