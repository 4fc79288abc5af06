import { createRequire } from "node:module";
import kafkajs from "kafkajs";

/** The parts of kafkajs that its types leave out. */
type Connection = {
  send(request: unknown): Promise<unknown>;
  sendAuthRequest(request: unknown): Promise<unknown>;
};
type Login = { connection: Connection; authenticate(): Promise<void> };

/**
 * Makes a login whose connection breaks an error of the connection, which passes, as other requests have it.
 * kafkajs 2.2.4 calls it refused credentials, which are final. A second call does nothing.
 */
export const tellLostLogins = (): void => {
  const require = createRequire(import.meta.url);
  const { prototype } = require("kafkajs/src/broker/saslAuthenticator/index.js") as { prototype: Login };
  const { authenticate } = prototype;
  if (authenticate.name === "authenticateOrLose") return;
  prototype.authenticate = async function authenticateOrLose() {
    const { connection } = this;
    let lost: unknown;
    // What logs in keeps the words of an error alone.
    this.connection = Object.assign(Object.create(connection) as Connection, {
      send: (request: unknown) =>
        connection.send(request).catch((error: unknown) => {
          if (error instanceof kafkajs.KafkaJSConnectionError) lost = error;
          throw error;
        }),
      // The way of old brokers, which close the connection to refuse.
      sendAuthRequest: (request: unknown) => connection.sendAuthRequest(request),
    });
    try {
      await authenticate.call(this);
    } catch (error) {
      throw lost ?? error;
    }
  };
};
