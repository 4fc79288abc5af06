import { type LinkBounds, parseRateWindows } from "@conversation-export/domain";
import { LIMIT_NAMES } from "@conversation-export/warehouse";
import { type Command, InvalidArgumentError, Option } from "commander";
import { wholeNumber } from "../commands/arguments.ts";
import type { JsonOption } from "../commands/command-deps.ts";
import type { ClientSettings } from "./clients.ts";

type RateLimits = NonNullable<ClientSettings["rateLimits"]>;

const rateLimit = (text: string, before: RateLimits = {}): RateLimits => {
  const [, name = "", windows = ""] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  const limit = LIMIT_NAMES.find((known) => known === name);
  if (limit === undefined) {
    throw new InvalidArgumentError(
      `'${name || text}' is no limit; write NAME=WINDOWS, NAME one of ${LIMIT_NAMES.join(", ")}.`,
    );
  }
  if (limit in before) throw new InvalidArgumentError(`${limit} is given more than once.`);
  const parsed = windows === "default" ? null : parseRateWindows(windows);
  if (parsed === undefined) {
    throw new InvalidArgumentError(
      `'${windows}' are no windows; write them as in 10/1s,100/1m (units s, m, h, d), or off, or default.`,
    );
  }
  return { ...before, [limit]: parsed };
};

const retentionDays = (text: string): number | "off" =>
  text === "off" ? text : wholeNumber(1, 36_500)(text);

export type SettingOptions = {
  linkBounds?: LinkBounds | "default";
  rateLimit?: RateLimits;
  retentionDays?: number | "off";
} & JsonOption;

/** null resets to the configuration. */
export const settingsOf = ({
  linkBounds,
  rateLimit: rateLimits,
  retentionDays: days,
}: SettingOptions): ClientSettings => ({
  ...(linkBounds !== undefined && { linkBounds: linkBounds === "default" ? null : linkBounds }),
  ...(rateLimits !== undefined && { rateLimits }),
  ...(days !== undefined && { retentionDays: days === "off" ? null : days }),
});

export const addSettings = (command: Command, linkBounds: readonly string[]): Command =>
  command
    .addOption(
      new Option(
        "--link-bounds <form>",
        "how next_page_uri carries the window (default: as export-api is set)",
      ).choices(linkBounds),
    )
    .addOption(
      new Option(
        "--rate-limit <name=windows>",
        "allowed requests, such as conversations=10/1s,100/1m; may be repeated (default: as export-api is set)",
      ).argParser(rateLimit),
    )
    .option(
      "--retention-days <days>",
      "the retention job deletes records created longer ago than this; off: keep them (default: off)",
      retentionDays,
    );
