import type { RecordForm } from "../kinds/record-form.ts";
import { type Field, fieldsOf } from "../record/record-fields.ts";
import type { EventType } from "../kinds/record-kinds.ts";
import { envelopeSchema, readHeaders } from "./envelope.ts";
import type { BusHeaders } from "./headers.ts";
import { countKeys, isObject, MAX_DEPTH, parsedJson } from "../json/json-object.ts";
import { type Rejected, type RejectionReason, rejected } from "./outcome.ts";
import { detailOf, problemsOf } from "./problems.ts";
import { instantFaults, readInstant } from "./read-instant.ts";
import type { Micros } from "./timestamp.ts";

type Given = Readonly<Record<string, unknown>>;

const all = (reason: RejectionReason, problems: readonly string[]): Rejected[] =>
  problems.map((problem) => rejected(reason, problem));

/** `mayBeEmpty`: path of a date that counts as absent if empty. */
function dateFaults(fields: readonly Field[], data: Given, mayBeEmpty?: string, path = ""): Rejected[] {
  return fields.flatMap(([name, kind, inner = []]) => {
    const value = data[name];
    const at = path + name;
    if (kind === "date") {
      if (typeof value !== "string" || (value === "" && at === mayBeEmpty)) return [];
      return instantFaults(value, at, "invalid_timestamp");
    }
    if (kind === "members") return isObject(value) ? dateFaults(inner, value, mayBeEmpty, `${at}.`) : [];
    if (kind !== "items" || !Array.isArray(value)) return [];
    return value.flatMap((item: unknown, index) =>
      isObject(item) ? dateFaults(inner, item, mayBeEmpty, `${at}.${index}.`) : [],
    );
  });
}

export function faultFinder<Data, Read extends keyof Data & string>(
  form: RecordForm<Data, Read>,
  expected: EventType,
) {
  const fields = fieldsOf(form.schema);

  const ofAttributes = (given: Given, unreadable: readonly string[]): Rejected[] => {
    const { error } = envelopeSchema.safeParse(given);
    const issues = (error?.issues ?? []).filter(
      ({ path: [name] }) =>
        !unreadable.includes(name === "datacontenttype" ? "content-type" : `ce_${String(name)}`),
    );
    return all("invalid_envelope", problemsOf(issues, given));
  };

  const ofTime = ({ time }: Given, latestTime: Micros | undefined): Rejected[] => {
    if (typeof time !== "string" || time === "") return [];
    const instant = readInstant(time);
    if (instant === undefined) return instantFaults(time, "time", "invalid_time");
    if (latestTime === undefined || instant <= latestTime) return [];
    return [rejected("time_in_future", "time is later than the bus allows")];
  };

  const ofData = (data: Given, subject: unknown): Rejected[] => {
    const { error } = form.schema.safeParse(data);
    const id: unknown = form.id.of(data as Pick<Data, Read>);
    const isOther = typeof subject === "string" && subject !== "" && typeof id === "string" && subject !== id;
    return [
      ...(countKeys(data) === undefined
        ? [rejected("nested_too_deeply", `data is nested deeper than ${MAX_DEPTH} levels`)]
        : []),
      ...all("invalid_record", problemsOf(error?.issues ?? [], data)),
      ...(isOther ? [rejected("subject_mismatch", "subject is not the id of the record")] : []),
      ...dateFaults(fields, data, form.updated?.name),
    ];
  };

  const ofEvent = (parsed: Given, given: Given, latestTime: Micros | undefined): Rejected[] => {
    const data = parsed === given ? parsed["data"] : parsed;
    const { type, subject } = given;
    const isOther = typeof type === "string" && type !== "" && type !== expected;
    const hint = "data_base64" in parsed ? "data_base64 is not supported, data must be" : "data is not";
    return [
      ...(isObject(data) ? [] : [rejected("invalid_envelope", `${hint} a JSON object`)]),
      ...(isOther ? [rejected("unexpected_type", `type is not ${expected}`)] : []),
      ...ofTime(given, latestTime),
      ...(isObject(data) && !isOther ? ofData(data, subject) : []),
    ];
  };

  return (text: string, headers: BusHeaders, latestTime: Micros | undefined): Rejected => {
    const { attributes: inHeaders, problems, unreadable } = readHeaders(headers);
    const parsed = parsedJson(text);
    const given = inHeaders ?? (isObject(parsed) ? parsed : null);
    const faults = [
      ...all("invalid_envelope", problems),
      ...(given === null ? [] : ofAttributes(given, unreadable)),
      ...(parsed === undefined ? [rejected("invalid_envelope", "the value is not JSON")] : []),
      ...(parsed === undefined || isObject(parsed)
        ? []
        : [rejected("invalid_envelope", "the value is not a JSON object")]),
      ...(given === null || !isObject(parsed) ? [] : ofEvent(parsed, given, latestTime)),
    ];
    const reason = faults[0]?.reason ?? "invalid_record";
    return rejected(reason, detailOf(faults.map(({ detail }) => detail)));
  };
}
