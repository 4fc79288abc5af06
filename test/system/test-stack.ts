import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Stack, type StackOptions, startStack } from "@conversation-export/local-stack";
import { keepsLogs, logFolders } from "./log-folders.ts";

export type TestStack = Stack & { readonly dir: string };

export const startTestStack = async (options: Omit<StackOptions, "dir"> = {}): Promise<TestStack> => {
  const dir = await mkdtemp(join(tmpdir(), "test-stack-"));
  logFolders.set(dir, "own");
  const stack = await startStack({ ...options, dir });
  const stop = async (): Promise<void> => {
    await stack.kill();
    if (!keepsLogs) await rm(dir, { recursive: true, force: true });
  };
  return Object.create(stack, { dir: { value: dir }, stop: { value: stop } }) as TestStack;
};
