import kafkajs, { type Mechanism } from "kafkajs";
import { internals } from "./internals.ts";
import type { TokenMechanism } from "./token-login.ts";

/** kafkajs' types leave it out. */
type Connection = {
  readonly broker: string;
  readonly sasl: Pick<Mechanism, "mechanism"> & Partial<Pick<TokenMechanism, "beforeHandshake">>;
  send(request: unknown): Promise<unknown>;
  sendAuthRequest(request: unknown): Promise<unknown>;
};
type Login = { connection: Connection; authenticate(): Promise<void> };

/** kafkajs calls an unanswered PLAIN or SCRAM login rejected credentials. */
export const reportLostLogins = (): void => {
  const { prototype } = internals("broker/saslAuthenticator/index") as { prototype: Login };
  const { authenticate } = prototype;
  prototype.authenticate = async function authenticateOrLose() {
    const { connection } = this;
    // Token logins throw such an error themselves.
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
      // Old brokers reject by closing the connection.
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
