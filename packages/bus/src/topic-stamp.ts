const PREFIX = "topic-id=";

/** What stands beside a committed offset: the id of the topic in which it counts. */
export const stampOf = (topicId: string | null): string | null =>
  topicId === null ? null : `${PREFIX}${topicId}`;

/**
 * Whether an offset was committed in a former topic of the same name. Offsets without a stamp, as tools commit them,
 * count as those of the present topic.
 */
export const isOfFormerTopic = (stamp: string | null | undefined, topicId: string | null): boolean =>
  topicId !== null && stamp?.startsWith(PREFIX) === true && stamp !== stampOf(topicId);
