import { fetchPatiently } from "./patient-fetch.ts";
import { splitPage } from "./walk.ts";

/** Continues at the watermark of the answer before. */
export type UpdateFollower = {
  /** By id. */
  readonly held: ReadonlyMap<string, string>;
  turn(): Promise<void>;
};

export const createUpdateFollower = (deps: {
  readonly apiUrl: string;
  readonly key: string;
}): UpdateFollower => {
  const held = new Map<string, string>();
  let since = "1970-01-01T00:00:00Z";
  return {
    held,
    turn: async () => {
      const query = `updated_since=${since}&updated_to=2105-12-31T00:00:00Z&page_size=10000`;
      let following = since;
      let next: string | null = `${deps.apiUrl}/v2/export/conversations?${query}`;
      while (next !== null) {
        const answer = await fetchPatiently(next, { headers: { authorization: `Bearer ${deps.key}` } });
        const text = await answer.text();
        if (answer.status !== 200) throw new Error(`${answer.status}: ${text.slice(0, 500)}`);
        // The first page's: what comes during the others must be read again.
        if (following === since) following = answer.headers.get("x-export-watermark") ?? since;
        const page = splitPage(text);
        for (const record of page.records) held.set((JSON.parse(record) as { _id: string })._id, record);
        next = page.next;
      }
      since = following;
    },
  };
};
