import type { PartitionProgress, TopicProgress } from "@conversation-export/bus";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { advance, type Note } from "./watermark.ts";

const MAX_NOTES = 8;

const partition = (
  number: number,
  start: number,
  end: number,
  committed: number | null,
): PartitionProgress => ({
  partition: number,
  start,
  end,
  committed,
});

const topicOf = (partitions: PartitionProgress[], topicId: string | null = "one"): TopicProgress => ({
  topicId,
  partitions,
});

const createTopic = () => {
  const logs: { arrivals: number[]; start: number; committed: number | null; settled: number }[] = [
    { arrivals: [], start: 0, committed: null, settled: 0 },
  ];
  let clock = 1;
  const at = (pick: number) => {
    const log = logs[pick % logs.length];
    if (log === undefined) throw new Error("no log");
    return log;
  };
  const steps = {
    produce: (pick: number) => {
      at(pick).arrivals.push(clock);
    },
    commit: (pick: number, size: number) => {
      const log = at(pick);
      log.committed = Math.min(log.arrivals.length, Math.max(log.start, log.committed ?? 0) + (size % 4));
      log.settled = Math.max(log.settled, log.committed);
    },
    replay: (pick: number, size: number) => {
      at(pick).committed = size % 2 === 0 ? null : 0;
    },
    expire: (pick: number, size: number) => {
      const log = at(pick);
      log.start = Math.min(log.arrivals.length, log.start + (size % 3));
    },
    grow: () => {
      if (logs.length < 4) logs.push({ arrivals: [], start: 0, committed: null, settled: 0 });
    },
  };
  return {
    steps,
    pass: () => {
      clock += 1;
    },
    now: () => clock,
    commits: () => logs.map(({ committed }) => committed),
    progress: (commits: readonly (number | null)[]) =>
      logs.map(({ arrivals, start }, index) =>
        partition(index, start, arrivals.length, commits[index] ?? null),
      ),
    unreadable: (before: number) =>
      logs.flatMap(({ arrivals, start, settled }, index) =>
        arrivals
          .map((arrival, offset) => ({ arrival, offset }))
          .filter(({ arrival, offset }) => arrival < before && offset >= settled && offset >= start)
          .map(({ offset }) => `${index}/${offset}`),
      ),
  };
};

const step = fc.record({
  kind: fc.constantFrom(
    "produce" as const,
    "produce" as const,
    "commit" as const,
    "commit" as const,
    "commit" as const,
    "replay" as const,
    "expire" as const,
    "grow" as const,
  ),
  pick: fc.nat(3),
  size: fc.nat(11),
});

describe("the watermark", () => {
  it("never claims an event that is neither settled nor deleted, grows, and keeps few notes", () => {
    let claims = 0;
    const rounds = fc.array(
      fc.record({ before: fc.array(step, { maxLength: 4 }), during: fc.array(step, { maxLength: 2 }) }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(rounds, (all) => {
        const topic = createTopic();
        let notes: readonly Note[] = [];
        let latest = 0;
        const play = (steps: (typeof all)[number]["before"]): void => {
          for (const { kind, pick, size } of steps) {
            topic.steps[kind](pick, size);
            topic.pass();
          }
        };
        for (const { before, during } of all) {
          play(before);
          const instant = topic.now();
          topic.pass();
          const commits = topic.commits();
          play(during);
          const answer = advance(notes, instant, topicOf(topic.progress(commits)), MAX_NOTES);
          notes = answer.notes;
          expect(notes.length).toBeLessThanOrEqual(MAX_NOTES);
          if (answer.watermark === undefined) continue;
          claims += 1;
          expect(answer.watermark).toBeGreaterThan(latest);
          latest = answer.watermark;
          expect(topic.unreadable(latest)).toEqual([]);
        }
      }),
      { numRuns: 500 },
    );
    expect(claims).toBeGreaterThan(300);
  });

  it("moves in steps while a group catches up with hours", () => {
    const hours = 5_000;
    let notes: readonly Note[] = [];
    for (let tick = 1; tick <= hours; tick += 1) {
      notes = advance(notes, tick, topicOf([partition(0, 0, tick * 10, 0)]), 50).notes;
    }
    expect(notes).toHaveLength(50);
    const seen: number[] = [];
    for (let tick = hours + 1; seen.at(-1) !== tick - 1; tick += 1) {
      const end = tick * 10;
      const progress = topicOf([partition(0, 0, end, Math.min(end, (tick - hours) * 100))]);
      const answer = advance(notes, tick, progress, 50);
      notes = answer.notes;
      if (answer.watermark !== undefined) seen.push(answer.watermark);
    }
    const jumps = seen.slice(1).map((instant, index) => instant - (seen[index] ?? 0));
    expect(seen.length).toBeGreaterThan(20);
    expect(Math.max(...jumps)).toBeLessThan((hours / 50) * 8);
  });

  it.each<[string, PartitionProgress[], boolean]>([
    ["an empty partition", [partition(0, 0, 0, null)], true],
    ["a partition whose records were all deleted", [partition(0, 7, 7, null)], true],
    ["a commit that lies before what was deleted", [partition(0, 7, 7, 3)], true],
    ["everything committed", [partition(0, 2, 7, 7), partition(1, 0, 0, null)], true],
    ["records and no commit", [partition(0, 0, 0, null), partition(1, 0, 1, null)], false],
    ["one record that is not committed", [partition(0, 0, 7, 7), partition(1, 0, 9, 8)], false],
    ["no partitions", [], false],
  ])("with %s", (_, progress, isReached) => {
    expect(advance([], 5, topicOf(progress)).watermark).toBe(isReached ? 5 : undefined);
  });

  it("ignores notes from before a partition was added", () => {
    const { notes } = advance([], 1, topicOf([partition(0, 0, 5, 0)]));
    const answer = advance(notes, 2, topicOf([partition(0, 0, 6, 5), partition(1, 0, 1, null)]));
    expect(answer).toMatchObject({ watermark: undefined, notes: [{ instant: 2 }] });
  });

  it("ignores notes of a topic that was deleted", () => {
    const { notes } = advance([], 1, topicOf([partition(0, 0, 5, 0)]));
    const answer = advance(notes, 2, topicOf([partition(0, 0, 6, 5)], "two"));
    expect(answer).toMatchObject({ watermark: undefined, notes: [{ instant: 2 }] });
  });

  it("drops notes of a clock that was ahead", () => {
    const { notes } = advance([], 900, topicOf([partition(0, 0, 5, 0)]));
    const back = advance(notes, 100, topicOf([partition(0, 0, 6, 5)]));
    expect(back.watermark).toBeUndefined();
    expect(advance(back.notes, 101, topicOf([partition(0, 0, 7, 6)])).watermark).toBe(100);
  });
});
