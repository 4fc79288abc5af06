import { join } from "node:path";

/** Files of the detached stack: `.local` of the project. */
export type LocalFolder = {
  readonly path: string;
  /** Data of the servers. */
  readonly stack: string;
  /** The variables for people and tests, in shell syntax. */
  readonly env: string;
  /** State kept after `down`: ports, secrets and the key. */
  readonly state: string;
  readonly supervisorPid: string;
  readonly supervisorLock: string;
  readonly supervisorLog: string;
  readonly logPath: (service: string) => string;
  readonly pidPath: (service: string) => string;
  readonly identityPath: (service: string) => string;
};

/** Socket of the supervisor. The name is relative because the system allows only about 100 characters. */
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
