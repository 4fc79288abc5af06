import { type Change, exportedAt } from "../sample/restless.ts";
import type { Delivery } from "../system/deliver.ts";
import type { ChangeList } from "./change-follower.ts";

const LIST_OF = { conversation: "conversations", message: "messages", end_user: "end_users" } as const;

/** `by`: on the bus, ms. */
type Published = { readonly change: Change; by: number };

export type PublishedChanges = {
  publish(changes: readonly Change[]): Promise<void>;
  count(): number;
  /** What a reader lacks that a watermark promises, in ms. */
  missingAt(list: ChangeList, watermark: number, held: ReadonlyMap<string, string>): string[];
  /** Records looked for by `missingAt`. */
  compared(): number;
  /** Ids of records that changed after that instant, in ms. */
  restlessSince(since: number): ReadonlySet<string>;
};

export const createPublishedChanges = (delivery: Pick<Delivery, "send">): PublishedChanges => {
  const published: Published[] = [];
  let compared = 0;
  return {
    async publish(changes) {
      const sent = changes.map((change): Published => ({ change, by: Infinity }));
      published.push(...sent);
      await delivery.send(changes.map(({ event }) => event));
      const by = Date.now();
      for (const one of sent) one.by = by;
    },
    count: () => published.length,
    missingAt(list, watermark, held) {
      const wanted = new Map<string, number>();
      for (const { change, by } of published)
        if (by < watermark && LIST_OF[change.kind] === list)
          wanted.set(change.id, Math.max(change.time, wanted.get(change.id) ?? 0));
      compared += wanted.size;
      return [...wanted].flatMap(([id, time]) => {
        const text = held.get(id);
        if (text === undefined) return [`${id} is missing`];
        return exportedAt(text) >= time ? [] : [`${id} of ${time} is older: ${text}`];
      });
    },
    compared: () => compared,
    restlessSince: (since) => new Set(published.flatMap(({ change, by }) => (by < since ? [] : [change.id]))),
  };
};
