import type { ReplayResult } from "@conversation-export/queue";

export type ReplayCounts = {
  read: number;
  /** By topic, dot, reason. */
  replayed: Map<string, { topic: string; reason: string; deadLetters: number }>;
  skipped: Record<keyof ReplayResult["skipped"], number>;
};

export const noCounts = (): ReplayCounts => ({
  read: 0,
  replayed: new Map(),
  skipped: { notMatching: 0, replayedBefore: 0, tooManyReplays: 0, withoutPayload: 0, unreadable: 0 },
});

export const countsOf = (result: ReplayResult): ReplayCounts => ({
  read: result.read,
  replayed: new Map(result.byReason.map((one) => [`${one.topic}.${one.reason}`, { ...one }])),
  skipped: { ...result.skipped },
});

export const resultOf = ({ read, replayed, skipped }: ReplayCounts, dryRun: boolean): ReplayResult => {
  const byReason = [...replayed.values()].sort(
    (one, other) => one.topic.localeCompare(other.topic) || one.reason.localeCompare(other.reason),
  );
  return {
    dryRun,
    read,
    replayed: byReason.reduce((sum, { deadLetters }) => sum + deadLetters, 0),
    byReason,
    skipped: { ...skipped },
  };
};
