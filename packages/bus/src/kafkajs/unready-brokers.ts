import kafkajs from "kafkajs";
import { internals } from "./internals.ts";

/** kafkajs' types leave these out. */
type Broker = {
  readonly brokerAddress: string;
  readonly lookupRequest: (...request: readonly unknown[]) => unknown;
  isConnected(): boolean;
  connect(): Promise<void>;
};
type BrokerPool = {
  connect(): Promise<void>;
  connectBroker(broker: Broker): Promise<void>;
  findConnectedBroker(): Promise<Broker>;
};

/** false: its API versions are unknown. */
const isReady = ({ lookupRequest }: Broker): boolean => lookupRequest.name !== "notInitializedLookup";

const isNamed = (error: unknown, name: string): error is Error =>
  error instanceof kafkajs.KafkaJSError && error.name === name;

/** The connection of another caller goes on. */
const laterOn = (error: unknown): never => {
  if (isNamed(error, "KafkaJSLockTimeout")) throw new kafkajs.KafkaJSConnectionError(error.message);
  throw error;
};

/** Before API versions are known, requests fail as if for good. */
export const awaitUnreadyBrokers = (): void => {
  const { prototype } = internals("broker/index") as { prototype: Broker };
  const pool = internals("cluster/brokerPool") as { prototype: BrokerPool };
  const { isConnected, connect } = prototype;

  prototype.isConnected = function isConnectedAndReady() {
    return isReady(this) && isConnected.call(this);
  };

  prototype.connect = function connectOrGiveUp() {
    return connect.call(this).catch((error: unknown) => {
      if (isReady(this) || !isNamed(error, "KafkaJSRequestTimeoutError")) throw error;
      throw new kafkajs.KafkaJSConnectionError(error.message, { broker: this.brokerAddress });
    });
  };

  // In `Broker.connect` such an error would end the connection in progress.
  const { connect: connectSeed, connectBroker, findConnectedBroker } = pool.prototype;
  pool.prototype.connect = function connectSeedInTime() {
    return connectSeed.call(this).catch(laterOn);
  };
  pool.prototype.connectBroker = function connectBrokerInTime(broker) {
    return connectBroker.call(this, broker).catch(laterOn);
  };
  pool.prototype.findConnectedBroker = async function findReadyBroker() {
    const broker = await findConnectedBroker.call(this);
    // It may have been replaced meanwhile.
    await this.connectBroker(broker);
    return broker;
  };
};
