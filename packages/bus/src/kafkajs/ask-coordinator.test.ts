import kafkajs from "kafkajs";
import { expect, it } from "vitest";
import { askCoordinator, awaitCoordinator } from "./ask-coordinator.ts";

const { signal } = new AbortController();
const answers = (type: string) =>
  new kafkajs.KafkaJSProtocolError(Object.assign(new Error(type), { type, code: 14 }));

it.each([
  "GROUP_LOAD_IN_PROGRESS",
  "GROUP_COORDINATOR_NOT_AVAILABLE",
  "NOT_COORDINATOR_FOR_GROUP",
])("asks again after %s", async (type) => {
  let asked = 0;
  const question = () => (++asked <= 2 ? Promise.reject(answers(type)) : Promise.resolve("committed"));
  expect(await askCoordinator(question, signal)).toBe("committed");
  expect(asked).toBe(3);
});

it("does not ask again after what cannot pass, nor after it is stopped", async () => {
  let asked = 0;
  const question = (type: string) => () => {
    asked += 1;
    return Promise.reject(answers(type));
  };
  await expect(askCoordinator(question("UNKNOWN_MEMBER_ID"), signal)).rejects.toThrow("UNKNOWN_MEMBER_ID");
  expect(asked).toBe(1);
  const stopped = AbortSignal.abort(new Error("stopped"));
  await expect(askCoordinator(question("GROUP_LOAD_IN_PROGRESS"), stopped)).rejects.toThrow("stopped");
  expect(asked).toBe(1);
});

it("waits for a coordinator though kafkajs says that there is none, and not after a refused login", async () => {
  const final = (name: string) => Object.assign(new kafkajs.KafkaJSNonRetriableError(name), { name });
  const none = final("KafkaJSGroupCoordinatorNotFound");
  const refused = final("KafkaJSSASLAuthenticationError");
  const errors: unknown[] = [];
  const found = (...before: Error[]) =>
    awaitCoordinator(
      () => {
        const next = before.shift();
        return next === undefined ? Promise.resolve("found") : Promise.reject(next);
      },
      { signal, onRetry: (error) => errors.push(error) },
    );
  expect(await found(none)).toBe("found");
  expect(errors).toEqual([none]);
  await expect(found(refused)).rejects.toBe(refused);
});
