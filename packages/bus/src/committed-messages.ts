import type { AbortedTransaction, FetchedMessage } from "./open-cluster.ts";

const ABORT_MARKER = 0;

/** A control record's key: version (2 bytes), then its type (2 bytes). */
const isAbortMarker = ({ isControlRecord, key }: FetchedMessage): boolean =>
  isControlRecord === true && key !== null && key.length >= 4 && key.readInt16BE(2) === ABORT_MARKER;

/**
 * The messages of a fetch that a reader may see: no control records, nothing of an aborted transaction. kafkajs'
 * own filter takes one transaction for each message, so with two that began before the first of them it lets
 * messages of the second pass; and a message with the key 00 00 00 00 ends one for it.
 */
export const committedMessages = (
  messages: readonly FetchedMessage[],
  abortedTransactions: readonly AbortedTransaction[],
): FetchedMessage[] => {
  const ahead = abortedTransactions
    .map(({ producerId, firstOffset }) => ({ producerId, firstOffset: BigInt(firstOffset) }))
    .sort((one, other) => (one.firstOffset < other.firstOffset ? 1 : -1));
  const aborting = new Set<string>();
  return messages.filter((message) => {
    for (let next = ahead.at(-1); next !== undefined && next.firstOffset <= BigInt(message.offset); ) {
      aborting.add(next.producerId);
      ahead.pop();
      next = ahead.at(-1);
    }
    const { producerId = "", inTransaction = false } = message.batchContext ?? {};
    if (isAbortMarker(message)) aborting.delete(producerId);
    return message.isControlRecord !== true && !(inTransaction && aborting.has(producerId));
  });
};
