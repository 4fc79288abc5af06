import type { Environment } from "@conversation-export/runtime";
import type { CommandDeps } from "./command-deps.ts";

/** Without a terminal. */
export const createTestDeps = (env: Environment = {}) => {
  const [out, err]: [string[], string[]] = [[], []];
  const deps: CommandDeps = {
    env,
    print: (text) => out.push(text),
    say: (text) => err.push(text),
    terminal: null,
    screen: null,
    now: () => new Date("2026-11-21T12:00:00Z"),
    catchInterrupt: () => ({ signal: new AbortController().signal, release: () => undefined }),
  };
  return { out, err, deps };
};
