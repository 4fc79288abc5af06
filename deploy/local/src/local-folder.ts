import { join } from "node:path";

/** Where the detached stack keeps its files: `.local` of the project. */
export type LocalFolder = {
  readonly path: string;
  /** Data of the servers. */
  readonly stack: string;
  /** The variables for people and tests, in shell syntax. */
  readonly env: string;
  /** What outlives `down`: ports, secret and key. */
  readonly state: string;
  readonly supervisorPid: string;
  readonly supervisorLock: string;
  readonly supervisorLog: string;
  readonly logPath: (service: string) => string;
  readonly pidPath: (service: string) => string;
  readonly identityPath: (service: string) => string;
};

/** The socket on which the supervisor listens. A relative name, for the system limits its length to about 100. */
export const socketName = "stack.sock";

/** Names the files of a local folder, given by its absolute path. */
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
