import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { choosePorts } from "../process/ports.ts";
import { createRelay, type Relay } from "./relay.ts";

const host = "127.0.0.1";
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const start = async (onConnection: (socket: Socket) => void): Promise<{ relay: Relay; port: number }> => {
  const { port, targetPort } = await choosePorts({ names: ["port", "targetPort"], fixed: {} });
  const target = createServer(onConnection).listen({ host, port: targetPort });
  await once(target, "listening");
  const relay = createRelay({ host, port, targetPort });
  await relay.listen();
  stops.push(
    () => relay.close(),
    () => target.close(),
  );
  return { relay, port };
};

describe("createRelay", () => {
  it("passes on what both sides say, and the end of each", async () => {
    const { port } = await start((socket) => void socket.pipe(socket));
    const client = connect({ host, port });
    const chunks: Buffer[] = [];
    client.on("data", (chunk: Buffer) => chunks.push(chunk));
    const text = "0123456789".repeat(100_000);
    client.write(text);
    await new Promise<void>((resolve) => {
      client.on("data", () => {
        if (Buffer.concat(chunks).length === text.length) resolve();
      });
    });
    expect(Buffer.concat(chunks).toString()).toBe(text);
    client.end();
    await once(client, "close");
  });

  it("ends properly what is reset, also while an answer is on its way", async () => {
    const ended = Promise.withResolvers<string>();
    const { port } = await start((socket) => {
      socket.on("error", (error) => ended.resolve(error.message));
      socket.on("end", () => ended.resolve("end"));
      socket.write(Buffer.alloc(1 << 20));
      socket.resume();
    });
    const client = connect({ host, port });
    await once(client, "readable");
    client.resetAndDestroy();
    expect(await ended.promise).toBe("end");
  });

  it("refuses connections once it is closed, and ends those that are open", async () => {
    const { relay, port } = await start((socket) => void socket.resume());
    const client = connect({ host, port });
    await once(client, "connect");
    await relay.close();
    await once(client, "close");
    const late = connect({ host, port });
    const [error] = (await once(late, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
  });
});
