import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitForLock } from "../process/lock-file.ts";
import { choosePorts } from "../process/ports.ts";
import { fetchJars } from "./maven.ts";
import { packageFolder } from "../paths.ts";
import { runCommand } from "../process/run-command.ts";
import { createFolderServer, type FolderDeps, type Server } from "../process/server.ts";

export type KafkaListeners = {
  readonly ports: Readonly<Partial<Record<"SSL" | "SASL_SSL" | "SASL_PLAINTEXT", number>>>;
  readonly properties: Readonly<Record<string, string>>;
  /** Stored only when the folder is formatted. */
  readonly scramUsers?: Readonly<Record<string, string>>;
  readonly javaOptions?: readonly string[];
};

/** `nodeId` counts from 2. */
export type KafkaCluster = { readonly id: string; readonly nodeId: number };

export type KafkaDeps = FolderDeps & {
  readonly port: number;
  readonly controllerPort: number;
  readonly listeners?: KafkaListeners | undefined;
  /** Absent: a new cluster. */
  readonly joins?: KafkaCluster;
  readonly stopDeadlineMs?: number;
  readonly log: (line: string) => void;
};

const version = "4.3.1";
const oldestJava = 17;
const host = "127.0.0.1";
const PROPERTIES = "server.properties";
/** Java writes them when it stops, in a minute on a busy machine. */
const writeClassesDeadlineMs = 120_000;

export function kafkaProperties(
  port: number,
  controllerPort: number,
  dataFolder: string,
  more?: KafkaListeners,
  joins?: KafkaCluster,
): string {
  const controller = joins === undefined ? `,CONTROLLER://${host}:${controllerPort}` : "";
  const others = Object.entries(more?.ports ?? {});
  const addresses = others.map(([protocol, at]) => `,${protocol}://${host}:${at}`).join("");
  const protocols = others.map(([protocol]) => `,${protocol}:${protocol}`).join("");
  return Object.entries({
    "process.roles": joins === undefined ? "broker,controller" : "broker",
    "node.id": String(joins?.nodeId ?? 1),
    listeners: `PLAINTEXT://${host}:${port}${controller}${addresses}`,
    "advertised.listeners": `PLAINTEXT://${host}:${port}${addresses}`,
    "listener.security.protocol.map": `PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT${protocols}`,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.quorum.voters": `1@${host}:${controllerPort}`,
    "log.dirs": dataFolder,
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    // Short: a killed broker can register again only when its session has ended.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    ...more?.properties,
  })
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

/** Old versions: 1.8. */
export function parseJavaVersion(output: string): number | undefined {
  const match = /version "(?:1\.)?(\d+)/.exec(output);
  return match ? Number(match[1]) : undefined;
}

async function checkJava(env: NodeJS.ProcessEnv): Promise<number | undefined> {
  const advice =
    `Install Java ${oldestJava} or newer (Debian or Ubuntu: apt-get install openjdk-17-jre-headless, ` +
    "macOS: brew install openjdk@17) and put java on the PATH.";
  const output = await promisify(execFile)("java", ["-version"], { env }).then(
    ({ stdout, stderr }) => `${stdout}${stderr}`,
    () => undefined,
  );
  if (output === undefined) throw new Error(`Java is missing: Kafka needs it. ${advice}`);
  const found = parseJavaVersion(output);
  if (found !== undefined && found < oldestJava)
    throw new Error(`Java ${found} is too old for Kafka. ${advice}`);
  return found;
}

// Must not begin with a dash.
function createId(): string {
  return randomBytes(16).toString("base64url").replace(/^-/, "A");
}

async function writeArchive(deps: KafkaDeps, jars: string, archive: string): Promise<void> {
  const lock = await waitForLock(`${archive}.lock`, 240_000);
  const folder = mkdtempSync(join(tmpdir(), "kafka-classes-"));
  try {
    if (existsSync(archive)) return;
    deps.log("preparing Kafka's classes");
    const { broker, controller } = await choosePorts({ names: ["broker", "controller"], fixed: {} });
    const written = join(folder, "classes.jsa");
    const server = await createBroker(
      {
        env: deps.env,
        log: deps.log,
        onUnexpectedEnd: () => undefined,
        folder,
        port: broker,
        controllerPort: controller,
        stopDeadlineMs: writeClassesDeadlineMs,
      },
      jars,
      `-XX:ArchiveClassesAtExit=${written}`,
    );
    await server.start();
    await server.stop();
    if (!existsSync(written)) throw new Error("Java wrote none");
    cpSync(written, `${archive}.partial`);
    renameSync(`${archive}.partial`, archive);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    lock.release();
  }
}

/** Java's archive of loaded classes halves the start; Kafka also starts without it. */
async function loadedClasses(deps: KafkaDeps, jars: string, java: number | undefined): Promise<string[]> {
  const archive = `${jars}.java-${java ?? "unknown"}.jsa`;
  try {
    if (!existsSync(archive)) await writeArchive(deps, jars, archive);
  } catch (error) {
    deps.log(
      `Kafka starts more slowly this time, without prepared classes (${error instanceof Error ? error.message : String(error)})`,
    );
    return [];
  }
  return [`-XX:SharedArchiveFile=${archive}`];
}

export async function createKafka(deps: KafkaDeps): Promise<Server> {
  const { env, log } = deps;
  const java = await checkJava(env);
  const jars = await fetchJars(`kafka-${version}`, join(packageFolder, "kafka", "pom.xml"), env, log);
  return createBroker(deps, jars, ...(await loadedClasses(deps, jars, java)));
}

/** Takes Java seconds but differs only in ids, so the first result is kept. */
async function format(
  deps: KafkaDeps,
  dataFolder: string,
  checkpoint: string,
  tool: readonly string[],
): Promise<void> {
  const { folder, env, joins } = deps;
  const clusterId = joins?.id ?? createId();
  const users = Object.entries(deps.listeners?.scramUsers ?? {});
  if (users.length === 0 && existsSync(checkpoint)) {
    mkdirSync(dataFolder, { recursive: true });
    cpSync(checkpoint, join(dataFolder, "bootstrap.checkpoint"));
    const ids = { "node.id": joins?.nodeId ?? 1, "directory.id": createId(), "cluster.id": clusterId };
    const lines = Object.entries({ version: 1, ...ids }).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(join(dataFolder, "meta.properties"), lines.join(""));
    return;
  }
  const logPath = join(folder, "format.log");
  rmSync(logPath, { force: true });
  const scram = users.flatMap(([name, password]) =>
    ["SCRAM-SHA-256", "SCRAM-SHA-512"].flatMap((mechanism) => [
      "--add-scram",
      `${mechanism}=[name=${name},password=${password}]`,
    ]),
  );
  const options = ["format", "--ignore-formatted", "-t", clusterId, "-c", join(folder, PROPERTIES), ...scram];
  const finished = await runCommand(
    { command: ["java", ...tool, ...options], cwd: folder, env, logPath },
    60_000,
  );
  if (finished.code !== 0) {
    const end = finished.log.trimEnd().split("\n").slice(-10).join("\n");
    throw new Error(`Kafka could not format its data folder. The end of ${logPath}:\n${end}`);
  }
  if (users.length > 0) return;
  const partial = `${checkpoint}.${process.pid}`;
  cpSync(join(dataFolder, "bootstrap.checkpoint"), partial);
  renameSync(partial, checkpoint);
}

/** `ofServer`: not for tools. */
async function createBroker(deps: KafkaDeps, jars: string, ...ofServer: readonly string[]): Promise<Server> {
  const { folder } = deps;
  mkdirSync(folder, { recursive: true });
  const dataFolder = join(folder, "data");
  const propertiesPath = join(folder, PROPERTIES);
  writeFileSync(
    propertiesPath,
    kafkaProperties(deps.port, deps.controllerPort, dataFolder, deps.listeners, deps.joins),
  );
  const classPath = [
    ...(deps.listeners?.javaOptions ?? []),
    // Halves the start; test servers live too briefly for the second compiler.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    "-cp",
    join(jars, "*"),
  ];

  if (!existsSync(join(dataFolder, "meta.properties"))) {
    await format(deps, dataFolder, `${jars}.bootstrap.checkpoint`, [...classPath, "kafka.tools.StorageTool"]);
  }

  return createFolderServer(deps, {
    name: "kafka",
    command: ["java", "-Xms256m", "-Xmx256m", ...ofServer, ...classPath, "kafka.Kafka", propertiesPath],
    startDeadlineMs: 60_000,
    stopDeadlineMs: deps.stopDeadlineMs ?? 15_000,
    ready: (readLog) => Promise.resolve(readLog().includes("Kafka Server started")),
  });
}
