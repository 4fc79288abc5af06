import {
  CAMPAIGN_KEY,
  END_OF_TIME,
  formatTimestampZ,
  isAcceptedInstant,
  LANGUAGE_TAG,
  parseTimestamp,
} from "@conversation-export/domain";
import { type Command, InvalidArgumentError } from "commander";

// Each parser throws InvalidArgumentError.

export const matching =
  (shape: RegExp, expectation: string) =>
  (text: string): string => {
    if (!shape.test(text)) throw new InvalidArgumentError(`It must be ${expectation}.`);
    return text;
  };

export const wholeNumber =
  (from: number, to: number) =>
  (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= from && value <= to)) {
      throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
    }
    return value;
  };

const NAME_TEXT = "1 to 128 characters of A-Z, a-z, 0-9, '.', '_' and '-'";

export const clientId = matching(/^[A-Za-z0-9._-]{1,128}$/, NAME_TEXT);
export const campaignKey = matching(CAMPAIGN_KEY, NAME_TEXT);
export const clusterName = matching(/^[\w-]+$/, "a name of letters, digits, '_' and '-'");
export const labelText = matching(/^[^\p{Cc}]{0,200}$/u, "at most 200 characters without control characters");
export const topicName = matching(
  /^[\w.-]{1,249}$/,
  "the name of a topic: letters, digits, '.', '_' and '-'",
);
export const secretName = matching(
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/,
  "the name of a Secret: lower-case letters, digits, '-' and '.'",
);
export const jobId = matching(
  /^[\w.:%~!*'()-]{1,300}$/,
  "the id of a job, as `export-ops jobs list` shows it",
);

/** Repeated words count once. */
export const listOf =
  (known: readonly string[], kind: string) =>
  (text: string): string[] => {
    const words = text.split(",").map((word) => word.trim());
    const unknown = words.find((word) => !known.includes(word));
    if (unknown !== undefined) {
      throw new InvalidArgumentError(
        `'${unknown}' is no ${kind}; it must be a list of ${known.join(", ")}, separated by commas.`,
      );
    }
    return [...new Set(words)];
  };

export const languageList = (text: string): string[] => {
  const languages = text.split(",").map((language) => language.trim());
  if (!languages.every((language) => LANGUAGE_TAG.test(language))) {
    throw new InvalidArgumentError("It must be a list of language tags such as en,pt-BR.");
  }
  return [...new Set(languages)];
};

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Also an age such as 90m, 6h or 3d; ISO 8601 in UTC with microseconds. */
export const instant =
  (now: () => Date) =>
  (text: string): string => {
    const [, amount, unit = ""] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
    const micros =
      amount === undefined
        ? parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text)
        : (now().getTime() - Number(amount) * (UNIT_MS[unit] ?? 0)) * 1000;
    if (micros === undefined || !(isAcceptedInstant(micros) || micros === END_OF_TIME)) {
      throw new InvalidArgumentError(
        "It must be a day (2026-11-01), an instant (2026-11-01T06:00:00Z), or how long ago (90m, 6h, 3d).",
      );
    }
    return formatTimestampZ(micros);
  };

/** Also a time from now such as 90d; ISO 8601 in UTC with ms. */
export const future =
  (now: () => Date) =>
  (text: string): string => {
    const [, amount, unit = ""] = /^(\d{1,6})([hd])$/.exec(text) ?? [];
    const at =
      amount === undefined
        ? Date.parse(instant(now)(text))
        : now().getTime() + Number(amount) * (UNIT_MS[unit] ?? 0);
    if (at <= now().getTime() || at > END_OF_TIME / 1_000)
      throw new InvalidArgumentError("It must be to come, and before 2106.");
    return new Date(at).toISOString();
  };

export type Span = { readonly since?: string; readonly until?: string };

/** Ends a command whose span is empty. */
export const checkSpan = ({ since, until }: Span, command: Command): void => {
  if (since !== undefined && until !== undefined && since >= until)
    command.error("error: --since must be earlier than --until");
};

/** `to` is exclusive. */
export type OffsetRange = { readonly partition: number; readonly from: number; readonly to: number };

export const offsetRange = (text: string, before: readonly OffsetRange[] = []): OffsetRange[] => {
  const [, partition, from, to] = /^(\d{1,5})=(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  const range = { partition: Number(partition), from: Number(from), to: Number(to) };
  if (partition === undefined || range.from >= range.to || range.partition > 0xffff) {
    throw new InvalidArgumentError(
      `'${text}' is no range; it must be PARTITION=FROM-TO, such as 0=1000-2000, without the offset TO.`,
    );
  }
  if (before.some((other) => other.partition === range.partition)) {
    throw new InvalidArgumentError(`Partition ${range.partition} is given more than once.`);
  }
  return [...before, range];
};
