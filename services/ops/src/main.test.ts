import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { EXIT } from "./explain/exit-code.ts";

/** Takes connections and never answers. */
const silent = createServer();
afterAll(() => void silent.close());

it("says in its log that SIGTERM ended it", async () => {
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), "migrate"], {
    env: { OPERATOR: "test", CLICKHOUSE_URL: `http://migrator:secret@127.0.0.1:${port}/export` },
    stdio: ["ignore", "inherit", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (errors += chunk));
  const [socket] = (await once(silent, "connection")) as [{ destroy(): void }];
  child.kill("SIGTERM");
  expect(await once(child, "close")).toEqual([EXIT.terminated, null]);
  expect(errors).toBe("export-ops: ended by SIGTERM\n");
  socket.destroy();
});
