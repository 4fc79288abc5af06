import { createRequire } from "node:module";
import kafkajs from "kafkajs";

/** The parts of kafkajs that its types leave out. */
type Broker = {
  readonly brokerAddress: string;
  readonly lookupRequest: (...request: readonly unknown[]) => unknown;
  isConnected(): boolean;
  connect(): Promise<void>;
};
type BrokerPool = { findConnectedBroker(): Promise<Broker> };

/**
 * Makes kafkajs 2.2.4 ask a broker only when it is ready. By itself it takes one for connected whose socket is open while
 * the versions of its requests are not known yet: the question then fails as if no later one could succeed. Who waits too
 * long for a connection that another makes gets an error of the connection, which passes. A second call does nothing.
 */
export const awaitUnreadyBrokers = (): void => {
  const require = createRequire(import.meta.url);
  const { prototype } = require("kafkajs/src/broker/index.js") as { prototype: Broker };
  const pool = require("kafkajs/src/cluster/brokerPool.js") as { prototype: BrokerPool };
  const { isConnected, connect } = prototype;
  if (isConnected.name === "isReady") return;

  prototype.isConnected = function isReady() {
    return this.lookupRequest.name !== "notInitializedLookup" && isConnected.call(this);
  };

  prototype.connect = function connectInTime() {
    const { brokerAddress: broker } = this;
    return connect.call(this).catch((error: unknown) => {
      if (!(error instanceof kafkajs.KafkaJSError) || error.name !== "KafkaJSLockTimeout") throw error;
      throw new kafkajs.KafkaJSConnectionError(error.message, { broker });
    });
  };

  const { findConnectedBroker } = pool.prototype;
  pool.prototype.findConnectedBroker = async function findReadyBroker() {
    const broker = await findConnectedBroker.call(this);
    // It may have taken the place of another in the meantime.
    await broker.connect();
    return broker;
  };
};
