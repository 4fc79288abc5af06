import type { FastifyReply } from "fastify";

/** Answers with a JSON value. */
export const sendJson = (reply: FastifyReply, status: number, value: unknown): void => {
  // A buffer, since the framework would add a charset to JSON text.
  void reply
    .code(status)
    .header("content-type", "application/json")
    .send(Buffer.from(JSON.stringify(value)));
};
