import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { createRestless } from "../sample/restless.ts";
import type { Random } from "../sample/values/random.ts";
import type { Delivery } from "../system/deliver.ts";
import type { System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { type ChangeFollower, type ChangeList, createChangeFollower } from "./change-follower.ts";
import { createPublishedChanges } from "./published-changes.ts";
import { walk } from "./walk.ts";

const LISTS: readonly ChangeList[] = ["conversations", "messages", "end_users"];
const WALKED = ["conversations", "messages"] as const;
const DEADLINE_MS = 60_000;
export const EVER = "created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z";

export type RestlessReaders = {
  begin(): Promise<void>;
  /** Fails where a reader lacks what a watermark promises. */
  load(ms: number): Promise<{ readonly events: number; readonly walks: number; readonly compared: number }>;
  settle(): Promise<void>;
  /** In ms. */
  watermarkOf(list: (typeof WALKED)[number]): Promise<number>;
};

export const createRestlessReaders = (deps: {
  readonly system: Pick<System, "apiUrl">;
  readonly delivery: Pick<Delivery, "send">;
  readonly random: Random;
  readonly seed: string;
  readonly client: string;
  readonly key: string;
  readonly records: number;
}): RestlessReaders => {
  const { system, delivery, random, seed, client, key, records } = deps;
  const published = createPublishedChanges(delivery);
  const change = createRestless({ seed, client, records, now: Date.now });
  const followers = LISTS.map((list) => createChangeFollower({ apiUrl: system.apiUrl, key, list }));

  const { missingAt } = published;
  const publish = (): Promise<void> => published.publish(Array.from({ length: 1 + random.int(40) }, change));

  const watermarkOf = async (list: (typeof WALKED)[number]): Promise<number> => {
    const answer = await fetch(`${system.apiUrl}/v2/export/${list}?${EVER}&page_size=100`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    return Date.parse(answer.headers.get("x-export-watermark") ?? "1970-01-01T00:00:00Z");
  };

  /** The watermark comes from before the read. */
  const readByCreation = async (list: (typeof WALKED)[number]): Promise<number> => {
    const watermark = await watermarkOf(list);
    const size = 100 + random.int(random.pick([100, 2_000]));
    const found = await walk(`${system.apiUrl}/v2/export/${list}?${EVER}&page_size=${size}`, key);
    const ids = found.map((text) => (JSON.parse(text) as { _id: string })._id);
    const held = new Map(ids.map((id, at) => [id, found[at] ?? ""]));
    const moving = published.restlessSince(watermark);
    const missing = missingAt(list, watermark, held).filter((text) => !moving.has(text.split(" ")[0] ?? ""));
    expect(missing, `${list} by creation, pages of ${size}`).toEqual([]);
    const twice = ids.filter((id, at) => ids.indexOf(id) !== at && !moving.has(id));
    expect(twice, `${list} by creation, pages of ${size}`).toEqual([]);
    return found.length;
  };

  const follow = async (follower: ChangeFollower): Promise<void> => {
    const { watermark } = await follower.toTheEnd(() =>
      random.chance(0.2) ? "lines" : 1 + random.int(random.pick([20, 2_000])),
    );
    expect(missingAt(follower.list, watermark, follower.held), `changes of ${follower.list}`).toEqual([]);
  };

  return {
    watermarkOf,
    begin: () =>
      until("changes are stable", DEADLINE_MS, async () => {
        const answer = await fetch(`${system.apiUrl}/v2/export/changes/messages`, {
          headers: { authorization: `Bearer ${key}` },
        });
        await answer.arrayBuffer();
        return answer.status === 200;
      }),
    async load(ms) {
      let isDone = false;
      let walks = 0;
      const again = async (work: () => Promise<unknown>, pauseMs: () => number): Promise<void> => {
        while (!isDone) {
          await work();
          await sleep(pauseMs());
        }
      };
      const working = [
        again(publish, () => random.int(400)),
        ...followers.map((one) =>
          again(
            () => follow(one),
            () => random.int(500),
          ),
        ),
        ...WALKED.map((list) =>
          again(
            async () => {
              if ((await readByCreation(list)) > 0) walks += 1;
            },
            () => random.int(500),
          ),
        ),
      ];
      await Promise.race([sleep(ms), Promise.all(working)]).finally(() => (isDone = true));
      await Promise.all(working);
      return { events: published.count(), walks, compared: published.compared() };
    },
    async settle() {
      const now = Date.now();
      for (const follower of followers) {
        await until(`${follower.list} are stable`, DEADLINE_MS, async () => {
          const { watermark } = await follower.toTheEnd(() => 5_000);
          return watermark > now;
        });
        expect(missingAt(follower.list, now, follower.held)).toEqual([]);
      }
    },
  };
};
