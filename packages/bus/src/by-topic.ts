/** As Kafka's requests list partitions. */
export const byTopic = <Entry extends { readonly topic: string }, Part>(
  entries: readonly Entry[],
  partOf: (entry: Entry) => Part,
): { topic: string; partitions: Part[] }[] =>
  Array.from(
    Map.groupBy(entries, ({ topic }) => topic),
    ([topic, own]) => ({ topic, partitions: own.map(partOf) }),
  );
