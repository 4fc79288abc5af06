import kafkajs from "kafkajs";
import { internals } from "./internals.ts";

/** The parts of kafkajs that its types leave out. */
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

/** False: it has not told which requests it knows. */
const isReady = ({ lookupRequest }: Broker): boolean => lookupRequest.name !== "notInitializedLookup";

const isNamed = (error: unknown, name: string): error is Error =>
  error instanceof kafkajs.KafkaJSError && error.name === name;

/** Who has waited too long for a connection that another makes, which goes on. */
const laterOn = (error: unknown): never => {
  if (isNamed(error, "KafkaJSLockTimeout")) throw new kafkajs.KafkaJSConnectionError(error.message);
  throw error;
};

/** Makes kafkajs ask a broker only once its API versions are known; before, requests fail as if for good. */
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

  // Not in `Broker.connect`: at such an error its pool would end the connection that the other still makes.
  const { connect: connectSeed, connectBroker, findConnectedBroker } = pool.prototype;
  pool.prototype.connect = function connectSeedInTime() {
    return connectSeed.call(this).catch(laterOn);
  };
  pool.prototype.connectBroker = function connectBrokerInTime(broker) {
    return connectBroker.call(this, broker).catch(laterOn);
  };
  pool.prototype.findConnectedBroker = async function findReadyBroker() {
    const broker = await findConnectedBroker.call(this);
    // It may have taken the place of another in the meantime.
    await this.connectBroker(broker);
    return broker;
  };
};
