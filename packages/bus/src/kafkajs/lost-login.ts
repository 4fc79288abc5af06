import kafkajs, { type Mechanism } from "kafkajs";
import { internals } from "./internals.ts";
import type { TokenMechanism } from "./token-login.ts";

/** The parts of kafkajs that its types leave out. */
type Connection = {
  readonly broker: string;
  readonly sasl: Pick<Mechanism, "mechanism"> & Partial<Pick<TokenMechanism, "beforeHandshake">>;
  send(request: unknown): Promise<unknown>;
  sendAuthRequest(request: unknown): Promise<unknown>;
};
type Login = { connection: Connection; authenticate(): Promise<void> };

/**
 * Makes an unanswered PLAIN or SCRAM login a retriable connection error; kafkajs calls it refused
 * credentials.
 */
export const reportLostLogins = (): void => {
  const { prototype } = internals("broker/saslAuthenticator/index") as { prototype: Login };
  const { authenticate } = prototype;
  prototype.authenticate = async function authenticateOrLose() {
    const { connection } = this;
    // What logs in by tokens throws such an error itself.
    if (connection.sasl.mechanism.toLowerCase() === "oauthbearer") {
      await connection.sasl.beforeHandshake?.(connection.broker);
      return authenticate.call(this);
    }
    let lost: Error | undefined;
    this.connection = Object.assign(Object.create(connection) as Connection, {
      send: (request: unknown) =>
        connection.send(request).catch((error: unknown) => {
          if (error instanceof kafkajs.KafkaJSError && error.retriable) lost = error;
          throw error;
        }),
      // The way of old brokers, which close the connection to refuse.
      sendAuthRequest: (request: unknown) => connection.sendAuthRequest(request),
    });
    try {
      await authenticate.call(this);
    } catch (error) {
      if (lost === undefined || !(error instanceof kafkajs.KafkaJSSASLAuthenticationError)) throw error;
      const { broker } = connection;
      throw new kafkajs.KafkaJSConnectionError(`the login broke off: ${lost.message}`, { broker });
    }
  };
};
