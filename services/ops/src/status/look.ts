import { deadLetterTopic, LIST_NAMES } from "@conversation-export/domain";
import { ConfigError } from "@conversation-export/runtime";
import {
  countReplayed,
  createRequestCompletion,
  createUnregisteredClientStore,
  createVersionReader,
  createWatermarkStore,
  createWindowStore,
  type OpenRequests,
} from "@conversation-export/warehouse";
import type { EventTopics } from "../config.ts";
import { lagOf, readLag } from "../connect/read-lag.ts";
import { exitCodeOf, explain } from "../explain/explain.ts";
import {
  type Asked,
  type DeadLetterCount,
  type Kafka,
  type Processes,
  secondsSince,
  type Status,
  type Tables,
  type TopicLag,
} from "./status.ts";
import type { StatusConnections } from "./status-connections.ts";
import { THRESHOLDS } from "./thresholds.ts";

/** Rethrows bugs. */
const asked = async <T>(question: Promise<T>): Promise<Asked<T>> => {
  try {
    return { value: await question, reason: null };
  } catch (error) {
    const reason = error instanceof ConfigError ? error.problems.join("; ") : explain(error);
    if (reason === undefined) throw error;
    return { value: null, reason, exitCode: exitCodeOf(error) };
  }
};

const readTopicLags = ({ bus }: StatusConnections): Promise<TopicLag[]> =>
  bus.use(async ({ admin, config }) => {
    const partitions = await readLag(admin, config);
    return config.topics.map((topic) => {
      const own = partitions.filter((one) => one.topic === topic);
      return {
        topic,
        lag: lagOf(topic, own),
        lost: own.reduce(
          (sum, { committed, start }) => sum + (committed === null ? 0 : Math.max(0, start - committed)),
          0,
        ),
      };
    });
  });

/** Reads no dead letter. */
const readDeadLetters = async (
  { bus, warehouse }: StatusConnections,
  at: Date,
): Promise<DeadLetterCount[]> => {
  const topics = await bus.use(({ admin, config }) =>
    Promise.all(
      config.topics.map(async (topic) => {
        const name = deadLetterTopic(topic);
        const bounds = await admin.fetchOffsets(name);
        const recent = await admin.fetchOffsetsAt(name, at.getTime() - THRESHOLDS.recentMs);
        return { topic, topicId: await admin.fetchTopicId(name), bounds, recent };
      }),
    ),
  );
  const kept = topics.flatMap(({ topic, topicId, bounds }) =>
    bounds.flatMap(({ partition, start, end }) =>
      start < end ? [{ topic, topicId, partition, start }] : [],
    ),
  );
  // The watermarks' part gives the reason.
  const replayed = await asked(warehouse.use(({ session }) => countReplayed(session, kept)));
  return topics.map(({ topic, bounds, recent }) => {
    const count = bounds.reduce((sum, { start, end }) => sum + end - start, 0);
    const lastHour = bounds.reduce((sum, { partition, start, end }) => {
      const from = recent.find((one) => one.partition === partition)?.offset ?? end;
      return sum + Math.max(0, end - Math.max(start, from));
    }, 0);
    const again = replayed.value?.get(topic) ?? 0;
    return {
      topic,
      kept: count,
      lastHour,
      notReplayed: replayed.value === null ? null : Math.max(0, count - again),
    };
  });
};

const readWatermarks = (
  { warehouse }: StatusConnections,
  topics: EventTopics,
  at: Date,
): Promise<Record<string, number | null>> =>
  warehouse.use(async ({ session }) => {
    const marks = await createWatermarkStore({ session }).load();
    return Object.fromEntries(
      LIST_NAMES.map((list) => {
        const micros = marks[list];
        return [topics[list], micros === undefined ? null : secondsSince(at, micros / 1000)];
      }),
    );
  });

const readBrokers = ({ bus }: StatusConnections): Promise<Kafka> =>
  bus.use(async ({ admin, config }) => {
    const [brokers, members] = await Promise.all([admin.fetchBrokers(), admin.fetchMembers(config.groupId)]);
    return { brokers, members };
  });

const readTables = ({ warehouse }: StatusConnections): Promise<Tables> =>
  warehouse.use(async ({ session, config }) => {
    const { server, migrations } = await createVersionReader({ session, topology: config }).load();
    const names = (state: string) => migrations.flatMap((one) => (one.state === state ? [one.name] : []));
    return {
      clickhouse: server,
      applied: names("applied").length,
      pending: names("pending"),
      changed: names("changed"),
      later: names("later"),
    };
  });

const readProcesses = ({ queue }: StatusConnections): Promise<Processes> =>
  queue.use(async ({ jobs }) => {
    const [{ version }, workers] = await Promise.all([
      jobs.checkServer(),
      // Every jobs process takes jobs of every kind.
      jobs.workers("windows"),
    ]);
    return { redis: version, workers };
  });

const allOf = async <T extends object>(parts: { [Name in keyof T]: Promise<T[Name]> }): Promise<T> => {
  const entries = Object.entries<Promise<unknown>>(parts).map(async ([name, part]) => [name, await part]);
  return Object.fromEntries(await Promise.all(entries)) as T;
};

const readOpenRequests = ({ warehouse }: StatusConnections, at: Date): Promise<OpenRequests> =>
  warehouse.use(({ session, settings }) =>
    createRequestCompletion({ session, now: Date.now }).open(at.getTime() - settings.erasureDeadlineMs),
  );

/** No part takes longer than twice `QUESTION_MS`. */
export const look = async (
  connections: StatusConnections,
  topics: EventTopics,
  at: Date,
): Promise<Status> => {
  const { bus, warehouse, queue } = connections;
  for (const one of [bus, warehouse, queue]) one.renew();
  const parts = await allOf({
    lag: asked(readTopicLags(connections)),
    deadLetters: asked(readDeadLetters(connections, at)),
    brokers: asked(readBrokers(connections)),
    watermarks: asked(readWatermarks(connections, topics, at)),
    windows: asked(
      warehouse.use(({ session, settings: { windowSeconds } }) =>
        createWindowStore({ session, windowSeconds }).countStates(),
      ),
    ),
    erasures: asked(readOpenRequests(connections, at)),
    tables: asked(readTables(connections)),
    clients: asked(warehouse.use(({ session }) => createUnregisteredClientStore({ session }).list())),
    queues: asked(queue.use(({ jobs }) => jobs.backlog(at.getTime() - THRESHOLDS.recentMs))),
    held: asked(queue.use(({ jobs }) => jobs.heldSchedules())),
    processes: asked(readProcesses(connections)),
  });
  return { at, ...parts };
};
