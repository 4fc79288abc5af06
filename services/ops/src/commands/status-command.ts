import { setTimeout as sleep } from "node:timers/promises";
import { type Command, Option } from "commander";
import { readTopics } from "../config.ts";
import { EXIT, type ExitCode } from "../explain/exit-code.ts";
import { renderJson } from "../output/print.ts";
import { look } from "../status/look.ts";
import { showPartitions } from "../status/partitions.ts";
import { renderStatus, statusFields } from "../status/render-status.ts";
import { exitCodeOfStatus, type Status } from "../status/status.ts";
import {
  closeConnections,
  createStatusConnections,
  type StatusConnections,
} from "../status/status-connections.ts";
import { wholeNumber } from "./arguments.ts";
import type { JsonOption, ProgramDeps } from "./command-deps.ts";

/** A server closes connections that are silent for longer. */
const KEEP_EVERY_MS = 2_000;

/** The next look reports a broken connection. */
const keepOpen = ({ warehouse }: StatusConnections): (() => void) => {
  const timer = setInterval(() => {
    warehouse.use(({ session }) => session.ping()).catch(() => undefined);
  }, KEEP_EVERY_MS);
  return () => clearInterval(timer);
};

type StatusOptions = {
  readonly watch?: true;
  readonly every: number;
  readonly partitions?: true;
} & JsonOption;

export const addStatusCommand = (program: Command, deps: ProgramDeps): void => {
  const { env, print, screen, now, setExitCode } = deps;

  const watch = async (
    lookOnce: () => Promise<ExitCode>,
    connections: StatusConnections,
    seconds: number,
  ): Promise<ExitCode> => {
    const interrupt = deps.catchInterrupt();
    let code: ExitCode = EXIT.done;
    try {
      while (!interrupt.signal.aborted) {
        code = await lookOnce();
        const letGo = keepOpen(connections);
        await sleep(seconds * 1000, undefined, { signal: interrupt.signal }).catch(() => undefined);
        letGo();
      }
    } finally {
      interrupt.release();
    }
    return code;
  };

  program
    .command("status")
    .option("--watch", "look again and again until Ctrl-C, with the same connections")
    .option("--every <seconds>", "how long to wait between two looks of --watch", wholeNumber(1, 3600), 5)
    .addOption(
      new Option("--partitions", "only how far ingest is in each partition").conflicts(["watch", "every"]),
    )
    .option("--json", "print JSON; with --watch one line a look")
    .addHelpText(
      "after",
      `
A line that begins with ! is what an alert fires on when it stays, with the page that says what to do. A line that
begins with ? names parts that could not be asked, and why; the others are shown all the same.

Of --partitions: START and END are the first and the next offset of a partition, COMMITTED the offset up to which
ingest has stored it, LAG the messages between COMMITTED and END; a dash means unknown. Everything that reached the
bus before the WATERMARK is readable.

Exit code: 0 all was asked; 1, 2 or 3 some part was not: refused, a wrong variable, a server does not answer. With
--watch that of the last look. Marks do not change it.

Examples:
  export-ops status
  export-ops status --json
  export-ops status --partitions
  export-ops status --watch --every 10`,
    )
    .action(async (options: StatusOptions) => {
      if (options.partitions === true) return showPartitions(deps, options.json === true);
      const topics = readTopics(env);
      const connections = createStatusConnections(env);
      const show = (status: Status): void => {
        if (options.json === true) {
          const fields = statusFields(status);
          return print(options.watch === true ? JSON.stringify(fields) : renderJson(fields));
        }
        const text = renderStatus(status);
        if (options.watch !== true) return print(text);
        if (screen === null) return print(`${text}\n`);
        screen.clear();
        print(text);
      };
      const lookOnce = async (): Promise<ExitCode> => {
        const status = await look(connections, topics, now());
        show(status);
        return exitCodeOfStatus(status);
      };
      try {
        setExitCode(
          await (options.watch === true ? watch(lookOnce, connections, options.every) : lookOnce()),
        );
      } finally {
        await closeConnections(connections);
      }
    });
};
