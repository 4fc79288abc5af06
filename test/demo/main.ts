import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, createAdmin } from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import { TOPICS } from "../system/system.ts";
import { createSample } from "../sample/index.ts";
import { readDeadLetters } from "./dead-letters.ts";
import { CLIENTS, demoSample, LATE_SHARE } from "./demo-sample.ts";
import { variable } from "./env-variables.ts";
import { carry } from "./flow.ts";
import { createKeys } from "./keys.ts";
import { createLocalSystem, type LocalSystem } from "./local-system.ts";
import { seconds } from "./print.ts";
import { createProgress } from "./progress.ts";
import { createReference } from "./reference.ts";
import {
  describeComparison,
  describeDeadLetters,
  describeRequests,
  describeRun,
  describeSample,
  type Stored,
} from "./report.ts";
import { runSql } from "../system/warehouse-sql.ts";

/** The default of `export-ops topics create`. */
const PARTITIONS = 6;
const TOPIC_NAMES = Object.values(TOPICS);
const CLOSE_DEADLINE_MS = 5_000;

type Close = () => Promise<void>;

const print = (text = ""): void => void process.stdout.write(`${text}\n`);
const step = (title: string): void => print(`\n${title}`);

const readStored = async (url: string): Promise<Stored> => {
  const text = await runSql(
    url,
    "SELECT sum(bytes_on_disk), sum(data_uncompressed_bytes) FROM system.parts WHERE active AND database = currentDatabase()",
  );
  const [disk = 0, raw = 0] = text.trim().split("\t").map(Number);
  return { disk, raw };
};

/** False: read records differ. */
const demonstrate = async (system: LocalSystem, keep: boolean, closing: Close[]): Promise<boolean> => {
  const options = demoSample(process.env, new Date());
  const sample = createSample(options);
  const totals = sample.totals();
  const here = relative(process.cwd(), system.folder);

  print("Events go in at Kafka, through ingest into ClickHouse, and come out of the paginated export API.");
  // First, since the processor is idle while servers start.
  const reference = createReference({ options, partitions: PARTITIONS });
  closing.push(reference.stop);

  step(`1/5  Start Kafka, ClickHouse, Redis and the services in ${here}`);
  const variables = await system.start();
  const apiUrl = variable(variables, "EXPORT_API_URL");
  const warehouseUrl = variable(variables, "CLICKHOUSE_URL");
  const connection: Connection = {
    brokers: variable(variables, "KAFKA_BROKERS").split(","),
    clientId: "demo",
    log: createLogger({ service: "demo", level: "silent" }),
  };
  const admin = createAdmin(connection);
  await admin.start();
  closing.push(admin.stop);
  if ((await admin.fetchOffsets(TOPICS.conversation)).length !== PARTITIONS) {
    throw new Error(`the topics do not have ${PARTITIONS} partitions`);
  }

  step("2/5  Create clients and keys");
  const keys = await createKeys(variables, CLIENTS);
  for (const [client, key] of keys) print(`  ${client.padEnd(8)} ${key.slice(0, 10)}…`);

  step(
    `3/5  Produce a sample, follow ingest, and compute beside it what must come out (SEED=${options.seed})`,
  );
  print(describeSample(totals, CLIENTS.length, LATE_SHARE));
  const ingestPidFile = join(system.folder, "ingest.pid");
  const producedBytes = await carry(
    { connection, admin, reference, partitions: PARTITIONS, ingestPidFile },
    sample,
    totals.events,
  );
  const { deadLetters, someConversation } = await reference.ready;

  step("4/5  Page through the export API for every client, and compare");
  const toRead = 2 * totals.records.conversation + totals.records.message;
  const progress = createProgress(process.stdout, { names: ["read"], total: toRead, unit: "records" });
  const answer = await reference
    .compare({ apiUrl, keys, warehouseUrl }, (records) => progress.update("read", records))
    .finally(progress.stop);
  print(describeComparison(answer));

  step("5/5  Look for every poison record in its dead-letter topic");
  const dead = await readDeadLetters({ connection, admin }, TOPIC_NAMES, deadLetters);
  print(describeDeadLetters(dead, deadLetters.length));

  const equal = [...answer.lists, ...answer.endUsers, { problems: dead.problems.length }].every(
    ({ problems }) => problems === 0,
  );
  step(
    equal
      ? "Equal: everything that was sent is read, once, at its latest version, handoffs merged."
      : "NOT EQUAL: see DIFFERENT above.",
  );
  print(describeRun(totals, { producedBytes, answer, stored: await readStored(warehouseUrl) }));
  step(
    keep
      ? `Everything is left running until \`make down\`. Try, as the client ${CLIENTS[0]}:`
      : "`make demo KEEP=1` leaves everything running, to try:",
  );
  print(describeRequests(join(here, "env"), options.start, someConversation));
  return equal;
};

const main = async (): Promise<void> => {
  const started = performance.now();
  const keep = process.env["KEEP"] === "1";
  const system = createLocalSystem(CLIENTS[0]);
  const closing: Close[] = [];
  let interrupted = false;

  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (interrupted) return;
      interrupted = true;
      print(`\n${signal}`);
      void system.stop().finally(() => process.exit(130));
    });
  }

  try {
    const equal = await demonstrate(system, keep, closing);
    process.exitCode = equal ? 0 : 1;
  } catch (error) {
    // The signal handler stops the system, so this error is expected.
    if (interrupted) return;
    process.exitCode = 1;
    print(`\nFailed: ${error instanceof Error ? error.message : String(error)}`);
    print(`Logs: ${join(system.folder, "*.log")}`);
  }
  const closed = Promise.all(closing.map((close) => close().catch(() => {})));
  await Promise.race([closed, sleep(CLOSE_DEADLINE_MS)]);
  if (!keep) {
    step("Stop everything");
    await system.stop();
  }
  print(`\n${seconds(performance.now() - started)} in all`);
  // A pending connection attempt must not keep the process alive.
  process.exit();
};

// kafkajs sets negative timers, which Node reports.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (warning.name !== "TimeoutNegativeWarning") process.stderr.write(`${String(warning)}\n`);
});

await main();
