const PREFIX = "topic-id=";

export const stampOf = (topicId: string | null): string | null =>
  topicId === null ? null : `${PREFIX}${topicId}`;

/** Without a stamp it counts in the present topic. */
export const isOfFormerTopic = (stamp: string | null | undefined, topicId: string | null): boolean =>
  topicId !== null && stamp?.startsWith(PREFIX) === true && stamp !== stampOf(topicId);
