import { ConfigError, type Environment } from "@conversation-export/runtime";
import {
  readBusConfig,
  readQueueConfig,
  readRequestSecret,
  readServiceSettings,
  readServiceUsers,
  readSuppressionSecret,
  readTopics,
  readWarehouseConfig,
} from "../config.ts";
import { busFindings } from "./bus-findings.ts";
import { cleartextFindings } from "./cleartext-findings.ts";
import { type Finding, type Findings, findingsOf } from "./finding.ts";
import { queueFindings } from "./queue-findings.ts";
import { identityFindings } from "./topic-id-findings.ts";
import { warehouseFindings } from "./warehouse-findings.ts";

const AREA = "settings";
const { ok, problem } = findingsOf(AREA);
const ADVICE = "see docs/configuration.md for its values";

const DEADLINE_MS = 72 * 3_600_000;

type Read<T> = { readonly value: T | null; readonly findings: Findings };

const tried = <T>(read: (env: Environment) => T, env: Environment): Read<T> => {
  try {
    return { value: read(env), findings: [] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { value: null, findings: error.problems.map((line): Finding => toFinding(line)) };
  }
};

const toFinding = (line: string): Finding => {
  const at = line.indexOf(": ");
  return problem(line.slice(0, at), line.slice(at + 2), ADVICE);
};

export const examine = async (env: Environment): Promise<Findings> => {
  const warehouse = tried(readWarehouseConfig, env);
  const bus = tried(readBusConfig, env);
  const queue = tried(readQueueConfig, env);
  const settings = tried(readServiceSettings, env);
  const users = tried(readServiceUsers, env);
  const suppression = tried(readSuppressionSecret, env);
  const secrets = [tried(readRequestSecret, env), suppression];
  const every = [warehouse, bus, queue, settings, users, ...secrets].flatMap(({ findings }) => findings);
  // Several readers report the same problem of ClickHouse's address.
  const wrong = every.filter(
    (one, at) => every.findIndex(({ name, found }) => name === one.name && found === one.found) === at,
  );
  const found = await Promise.all([
    warehouse.value === null
      ? []
      : warehouseFindings(warehouse.value, users.value, {
          erasureDeadlineMs: settings.value?.erasureDeadlineMs ?? DEADLINE_MS,
          secret: suppression.value,
        }),
    bus.value === null || settings.value === null ? [] : busFindings(bus.value, settings.value),
    bus.value === null || warehouse.value === null
      ? []
      : identityFindings(bus.value, readTopics(env), warehouse.value),
    queue.value === null ? [] : queueFindings(queue.value, warehouse.value),
  ]);
  const open = cleartextFindings({ warehouse: warehouse.value, bus: bus.value, queue: queue.value });
  return [...(wrong.length === 0 ? [ok("variables", "complete")] : wrong), ...open, ...found.flat()];
};
