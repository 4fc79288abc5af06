const PREFIX = "topic-id=";

/** What stands beside a committed offset: the id of the topic in which it counts. */
export const stampOf = (topicId: string | null): string | null =>
  topicId === null ? null : `${PREFIX}${topicId}`;

/**
 * Whether an offset belongs to a former topic of this name. Without a stamp it counts as the present topic's.
 */
export const isOfFormerTopic = (stamp: string | null | undefined, topicId: string | null): boolean =>
  topicId !== null && stamp?.startsWith(PREFIX) === true && stamp !== stampOf(topicId);
