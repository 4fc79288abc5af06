import { join } from "node:path";

export type LocalFolder = {
  readonly path: string;
  readonly stack: string;
  readonly env: string;
  /** Kept after `down`. */
  readonly state: string;
  readonly supervisorPid: string;
  readonly supervisorLock: string;
  readonly supervisorLog: string;
  readonly logPath: (service: string) => string;
  readonly pidPath: (service: string) => string;
  readonly identityPath: (service: string) => string;
};

/** Relative, because socket paths are limited to about 100 characters. */
export const socketName = "stack.sock";

export function localFolder(path: string): LocalFolder {
  return {
    path,
    stack: join(path, "stack"),
    env: join(path, "env"),
    state: join(path, "state.json"),
    supervisorPid: join(path, "stack.pid"),
    supervisorLock: join(path, "stack.lock"),
    supervisorLog: join(path, "stack.log"),
    logPath: (service) => join(path, `${service}.log`),
    pidPath: (service) => join(path, `${service}.pid`),
    identityPath: (service) => join(path, "run", `${service}.identity`),
  };
}
