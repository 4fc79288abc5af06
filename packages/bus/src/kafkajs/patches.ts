import { passBatches } from "./fetch-response.ts";
import { patchOnce } from "./internals.ts";
import { reportLostLogins } from "./lost-login.ts";
import { checkRequestsOnlyWhenNeeded } from "./request-queue.ts";
import { leaveSilentBrokers } from "./silent-brokers.ts";
import { awaitUnreadyBrokers } from "./unready-brokers.ts";

/**
 * Applies all patches of kafkajs, for the whole process.
 *
 * | patch | reported as | fails without it |
 * |---|---|---|
 * | passBatches | tulios/kafkajs#1723 | bus-damage.test.ts |
 * | checkRequestsOnlyWhenNeeded | tulios/kafkajs#1704, #1751 | request-queue.test.ts |
 * | leaveSilentBrokers | tulios/kafkajs#1163 | silent-brokers.test.ts |
 * | reportLostLogins | tulios/kafkajs#1550 | silent-brokers.test.ts |
 * | awaitUnreadyBrokers | none | silent-brokers.test.ts |
 */
export const patchKafkajs = (): void => {
  for (const patch of [
    passBatches,
    checkRequestsOnlyWhenNeeded,
    leaveSilentBrokers,
    reportLostLogins,
    awaitUnreadyBrokers,
  ])
    patchOnce(patch.name, patch);
};
