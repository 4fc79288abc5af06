import { within } from "@conversation-export/runtime";

/** With connecting. */
export const QUESTION_MS = 10_000;

type Opened<C> = { readonly client: C; close(): Promise<unknown> };

export type KeptConnection<C> = {
  use<T>(work: (client: C) => Promise<T>): Promise<T>;
  /** Closes it if a question failed. */
  renew(): void;
  close(): Promise<void>;
};

export const createKeptConnection = <C>(deps: {
  readonly open: () => Promise<Opened<C>>;
  readonly explain: (error: unknown, client: C) => unknown;
  readonly late: () => Error;
}): KeptConnection<C> => {
  let opened: Promise<Opened<C>> | null = null;
  let failed = false;

  const drop = async (): Promise<void> => {
    const former = opened;
    [opened, failed] = [null, false];
    await former?.then(({ close }) => close()).catch(() => undefined);
  };

  return {
    use: async (work) => {
      opened ??= deps.open();
      const open = opened;
      const ask = async () => {
        const { client } = await open;
        try {
          return await work(client);
        } catch (error) {
          throw await deps.explain(error, client);
        }
      };
      try {
        return await within(ask(), QUESTION_MS, () => {
          throw deps.late();
        });
      } catch (error) {
        if (open === opened) failed = true;
        throw error;
      }
    },
    renew: () => {
      if (failed) void drop();
    },
    close: drop,
  };
};
