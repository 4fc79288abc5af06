import { ServiceError } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { exitCodeOf, redisAway } from "./explain.ts";
import { EXIT } from "./exit-code.ts";

const server = { url: "redis://:secret@redis:6379" };
const answered = (message: string) => {
  const reply = Object.assign(new Error(message), { name: "ReplyError" });
  const error = new ServiceError("redis_unavailable", "Redis refuses", { cause: reply });
  return redisAway(server, message, error);
};

it.each([
  ["OOM command not allowed when used memory > 'maxmemory'.", "writes", "raise maxmemory"],
  ["NOREPLICAS Not enough good replicas to write.", "writes", "bring them back"],
  ["MISCONF Errors writing to the AOF file: No space left on device", "writes", "make room there"],
  ["READONLY You can't write against a read only replica.", "writes", "name the primary"],
  ["NOPERM this user has no permissions to run the 'set' command", "the request", "grants --redis"],
  ["BUSY Redis is busy running a script.", "the request", "see its log"],
])("quotes a Redis that answers %j", (words, what, advice) => {
  const error = answered(words);
  expect(error.detail).toEqual({
    found: `Redis refuses ${what} at redis:6379 (${words})`,
    advice: expect.stringContaining(advice),
  });
  expect(exitCodeOf(error)).toBe(EXIT.failed);
});

it("quotes what Redis 6 answers within a script without the number of its line", () => {
  const words = "OOM command not allowed when used memory > 'maxmemory'.";
  const error = answered(
    `ERR Error running script (call to f_5ab4): @user_script:589: @user_script: 589: -${words}`,
  );
  expect(error.detail?.found).toBe(`Redis refuses writes at redis:6379 (${words})`);
});

it("tells a refusal from silence and from wrong credentials", () => {
  expect(exitCodeOf(redisAway(server, "connect ECONNREFUSED"))).toBe(EXIT.away);
  expect(answered("WRONGPASS invalid username-password pair").message).toContain("refuses the credentials");
});
