import { stopProcess } from "./stop-process.ts";

/** Uses SIGSTOP; the server continues even if `work` fails. */
export const whileStopped = async <T>(
  { pid }: { readonly pid: number | undefined },
  work: () => Promise<T>,
): Promise<T> => {
  if (pid === undefined) throw new Error("the server does not run");
  await stopProcess(pid);
  try {
    return await work();
  } finally {
    process.kill(pid, "SIGCONT");
  }
};
