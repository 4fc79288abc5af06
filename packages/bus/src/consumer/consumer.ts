import { createLoop, type Metrics, retry } from "@conversation-export/runtime";
import kafkajs, { type Consumer as KafkaConsumer, type Kafka } from "kafkajs";
import { awaitCoordinator } from "../kafkajs/ask-coordinator.ts";
import { createCluster } from "../kafkajs/cluster.ts";
import { createKafka, METADATA_MAX_AGE_MS, RETRY } from "../kafkajs/connection.ts";
import { loginError, mayPassAtStart, startError } from "../kafkajs/errors.ts";
import { createJoinGate } from "../topics/join-gate.ts";
import { createTopicGuard } from "../topics/topic-guard.ts";
import { createDamageCheck } from "../records/damage-check.ts";
import { createBatchReader } from "./batch-reader.ts";
import { createCommits } from "./commits.ts";
import type { Consumer, ConsumerDeps } from "./contract.ts";
import { drainWithin } from "./drain.ts";
import { createMembership } from "./membership.ts";
import { createPauses } from "./pauses.ts";

/** A waiting message keeps its whole fetch response in memory. */
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_PARTITION_BYTES = 4 * 1024 * 1024;
const FETCH = { minBytes: 64 * 1024, maxWaitMs: 250 };

/** Nothing is lost until then (docs/decisions/0031). */
const TOPIC_LOOK_MS = 2_000;

const createCounters = (metrics: Metrics | undefined) => ({
  outOfRange: metrics?.counter(
    "conversation_export_bus_offset_out_of_range_total",
    "Partitions started again from their first offset because the committed one was gone: records were lost.",
    ["topic"],
  ),
  joins: metrics?.counter(
    "conversation_export_bus_joins_total",
    "Assignments received from the consumer group.",
  ),
  restarts: metrics?.counter(
    "conversation_export_bus_restarts_total",
    "Consumer restarts after retries ran out.",
  ),
});

const subscribe = async (
  consumer: KafkaConsumer,
  { topics, log }: ConsumerDeps,
  signal: AbortSignal,
  onRetry: () => void,
): Promise<void> => {
  try {
    await retry(
      async () => {
        await consumer.connect();
        await consumer.subscribe({ topics: [...topics], fromBeginning: true });
      },
      {
        signal,
        initialMs: 500,
        retryable: mayPassAtStart,
        onRetry: (error) => {
          onRetry();
          log.warn({ topics, error: String(error) }, "waiting for Kafka and its topics");
        },
      },
    );
  } catch (error) {
    signal.throwIfAborted();
    throw startError("consumer", error);
  }
};

/** The consumer reports errors that do not pass. */
const findCoordinator = async (
  kafka: Kafka,
  { groupId, log }: ConsumerDeps,
  signal: AbortSignal,
  onRetry: () => void,
): Promise<void> => {
  const cluster = createCluster(kafka);
  try {
    await cluster.connect();
    await awaitCoordinator(() => cluster.findGroupCoordinator({ groupId }), {
      signal,
      onRetry: (error) => {
        onRetry();
        log.warn({ groupId, error: String(error) }, "waiting for the coordinator of the group");
      },
    });
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ groupId, error: String(error) }, "finding the coordinator of the group failed");
  } finally {
    await cluster.disconnect();
  }
};

/** After a join partitions start at their committed offsets. */
export const createConsumer = (deps: ConsumerDeps): Consumer => {
  const { log, groupId, metrics } = deps;
  const sessionTimeoutMs = deps.sessionTimeoutMs ?? 30_000;
  const drainMs = Math.floor(sessionTimeoutMs / 2);
  const { minBytes, maxWaitMs } = deps.fetch ?? FETCH;
  const abort = new AbortController();

  const { outOfRange, joins, restarts } = createCounters(metrics);
  const membership = createMembership();
  let crashed = false;
  let running: Promise<void> | undefined;

  const tick = (): void => {
    membership.lastTick = Date.now();
  };
  // `stop` may come during a drain.
  const isStopped = (): boolean => membership.phase === "stopped";

  const crash = (error: unknown): void => {
    if (crashed || isStopped()) return;
    crashed = true;
    deps.onCrash(error);
  };

  const beforeJoin = async (): Promise<void> => {
    if (membership.phase === "joined") {
      membership.phase = "draining";
      log.info({ groupId, epoch: membership.epoch }, "rebalancing");
      await drainWithin(() => deps.onRebalancing(), {
        waitMs: drainMs,
        onLate: () =>
          log.warn({ epoch: membership.epoch, drainMs }, "drain took longer than the rejoin can wait"),
        onError: crash,
      });
    }
    if (isStopped()) throw new kafkajs.KafkaJSNonRetriableError("the consumer is stopped");
    // The other order throws finished work away.
    membership.phase = "joining";
  };
  const topics = createTopicGuard((topic, partitions) =>
    log.warn(
      { groupId, topic, partitions },
      "the topic was deleted and created anew: it is read from its beginning",
    ),
  );
  const lookAtTopics = createLoop({
    turn: () =>
      topics.look().catch((error: unknown) => log.debug({ error: String(error) }, "topic ids unknown")),
    pauseMs: TOPIC_LOOK_MS,
    pauseFirst: true,
  });
  const gate = createJoinGate({ groupId, beforeJoin, topics });
  const kafka = createKafka(deps, {
    onLine: () => {
      if (membership.phase !== "joined") tick();
    },
    onOffsetOutOfRange: ({ topic }) => outOfRange?.inc({ topic }),
  });
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    heartbeatInterval: Math.floor(sessionTimeoutMs / 10),
    rebalanceTimeout: Math.max(60_000, 2 * drainMs),
    maxBytesPerPartition: MAX_PARTITION_BYTES,
    maxBytes: MAX_BYTES,
    minBytes,
    maxWaitTimeInMs: maxWaitMs,
    metadataMaxAge: METADATA_MAX_AGE_MS,
    allowAutoTopicCreation: false,
    partitionAssigners: [gate.assigner],
    // Only a restart looks for another coordinator.
    retry: { ...RETRY, retries: 2, restartOnFailure: () => Promise.resolve(!isStopped()) },
  });

  const pauses = createPauses({
    membership,
    pause: (partitions) => consumer.pause(partitions),
    resume: (partitions) => consumer.resume(partitions),
  });
  const commits = createCommits({
    membership,
    topics,
    signal: abort.signal,
    metrics,
    log,
  });
  const reader = createBatchReader({
    membership,
    gate,
    topics,
    pauses,
    commits,
    isLasting: createDamageCheck({ log }),
    log,
    onMessages: (slice) => deps.onMessages(slice),
  });

  const { events } = consumer;
  const alive = (): void => {
    if (membership.phase === "joined") tick();
  };
  consumer.on(events.FETCH_START, alive);
  consumer.on(events.HEARTBEAT, alive);

  consumer.on(events.GROUP_JOIN, ({ payload }) => {
    if (isStopped()) return;
    pauses.lift();
    commits.sendBy(undefined);
    const partitions = Object.entries(payload.memberAssignment).flatMap(([topic, numbers]) =>
      numbers.map((partition) => ({ topic, partition })),
    );
    const epoch = membership.epoch + 1;
    Object.assign(membership, { epoch, phase: "joined", lastTick: Date.now(), assignment: partitions });
    joins?.inc();
    log.info(
      { groupId, epoch, partitions: partitions.map(({ topic, partition }) => `${topic}/${partition}`) },
      "joined",
    );
    try {
      deps.onAssigned({ epoch, partitions });
    } catch (error) {
      crash(error);
    }
  });

  consumer.on(events.CRASH, ({ payload }) => {
    tick();
    if (!payload.restart) {
      crash(loginError("consumer", payload.error) ?? payload.error.cause ?? payload.error);
      return;
    }
    restarts?.inc();
    log.warn({ groupId, error: payload.error.message }, "consumer restarts");
  });

  return {
    start: async () => {
      await subscribe(consumer, deps, abort.signal, tick);
      await findCoordinator(kafka, deps, abort.signal, tick);
      await lookAtTopics.start();
      running = consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: reader.eachBatch });
      await running;
    },
    stop: async () => {
      membership.phase = "stopped";
      abort.abort();
      // Not awaited: closing the client ends its request.
      void lookAtTopics.stop();
      await consumer.disconnect();
      await running;
    },
    commit: commits.commit,
    pause: pauses.pause,
    resume: pauses.resume,
    pausedCount: pauses.count,
    assigned: () => membership.assignment,
    isJoined: () => membership.phase === "joined",
    lastTick: () => membership.lastTick,
  };
};
