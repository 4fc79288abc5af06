import { type Logger, type Metrics, retry } from "@conversation-export/runtime";
import type { OffsetsByTopicPartition } from "kafkajs";
import { byTopic } from "../by-topic.ts";
import { busError, mayPass, protocolErrorType } from "../kafkajs/errors.ts";
import type { TopicGuard } from "../topics/topic-guard.ts";
import type { PartitionOffset } from "../message.ts";
import type { Consumer } from "./contract.ts";
import { type Membership, mayCommit } from "./membership.ts";

type SendCommit = (request: OffsetsByTopicPartition) => Promise<void>;

export type Commits = {
  commit: Consumer["commit"];
  /** undefined: since the join nothing was read. */
  sendBy(send: SendCommit | undefined): void;
};

/** Only a rejoin helps. */
const FENCED: ReadonlySet<string> = new Set([
  "ILLEGAL_GENERATION",
  "UNKNOWN_MEMBER_ID",
  "REBALANCE_IN_PROGRESS",
  "FENCED_INSTANCE_ID",
  "NOT_COORDINATOR_FOR_GROUP",
]);

const isFenced = (error: unknown): boolean => FENCED.has(protocolErrorType(error) ?? "");

/** One at a time, so that none overtakes; kafkajs' own commit may be repeated under a new generation. */
export const createCommits = (deps: {
  readonly membership: Membership;
  readonly topics: Pick<TopicGuard, "stampOf">;
  readonly signal: AbortSignal;
  readonly metrics: Metrics | undefined;
  readonly log: Logger;
}): Commits => {
  const { membership, topics, signal, log } = deps;
  const commits = deps.metrics?.counter("conversation_export_bus_commits_total", "Commits by result.", [
    "result",
  ]);
  let sendCommit: SendCommit | undefined;
  let last: Promise<unknown> = Promise.resolve();

  const commitNow = async (
    epoch: number,
    offsets: readonly PartitionOffset[],
  ): Promise<"committed" | "fenced"> => {
    try {
      return await retry(
        async () => {
          // kafkajs takes the generation in this turn: no join comes between check and use.
          if (!mayCommit(membership, epoch) || sendCommit === undefined) return "fenced";
          // Nothing was read yet.
          if (offsets.some(({ topic }) => topics.stampOf(topic) === undefined)) return "fenced";
          await sendCommit({
            topics: byTopic(offsets, ({ topic, partition, offset }) => ({
              partition,
              offset: String(offset),
              metadata: topics.stampOf(topic) ?? null,
            })),
          });
          return "committed";
        },
        {
          signal,
          initialMs: 50,
          maxMs: 1000,
          retryable: (error) => mayPass(error) && !isFenced(error),
          onRetry: (error, attempt) => log.debug({ attempt, error: String(error) }, "commit again"),
        },
      );
    } catch (error) {
      if (!mayCommit(membership, epoch) || isFenced(error)) return "fenced";
      throw busError("commit", "commit failed", error);
    }
  };

  return {
    commit: (epoch, offsets) => {
      if (offsets.length === 0) {
        return Promise.resolve(mayCommit(membership, epoch) ? "committed" : "fenced");
      }
      const result = last.then(() => commitNow(epoch, offsets));
      last = result.catch(() => {});
      return result.then((outcome) => {
        commits?.inc({ result: outcome });
        return outcome;
      });
    },
    sendBy: (send) => {
      sendCommit = send;
    },
  };
};
