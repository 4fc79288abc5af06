import { describe, expect, it } from "vitest";
import { smsTriggerBusKey, smsTriggerEvent, smsTriggerEventSchema, smsTriggerSchema } from "./sms-trigger.ts";

const triggerWith = (fields: Record<string, unknown>, others: Record<string, unknown> = {}) => ({
  campaign_key: "spring",
  language: "en",
  recipient: { meta_fields: { phone_number: "+15551234567", ...fields } },
  ...others,
});

describe("an SMS trigger", () => {
  it.each([
    [triggerWith({})],
    [triggerWith({ phone_number: "+4915112345678", name: "Ida", vip: true, orders: 12.5, "": "", é: "🙂" })],
    [triggerWith({}, { language: "zh-Hant-TW" })],
    [triggerWith({ last: Number.MAX_SAFE_INTEGER, text: "x".repeat(1_000) })],
    [triggerWith(Object.fromEntries(Array.from({ length: 49 }, (_, at) => [`f${at}`, at])))],
  ])("is taken (%#)", (body) => {
    expect(smsTriggerSchema.parse(body)).toEqual(body);
  });

  it.each([
    ["recipient.meta_fields.phone_number", triggerWith({ phone_number: "15551234567" })],
    ["recipient.meta_fields.phone_number", triggerWith({ phone_number: "+05551234567" })],
    ["recipient.meta_fields.phone_number", triggerWith({ phone_number: "+1555123456789012" })],
    ["recipient.meta_fields.phone_number", triggerWith({ phone_number: "+1 555 1234567" })],
    ["recipient.meta_fields.phone_number", triggerWith({ phone_number: "+15551234567\n" })],
    ["recipient.meta_fields.phone_number", triggerWith({ phone_number: undefined })],
    ["recipient.meta_fields.phone_number", triggerWith({ phone_number: 15551234567 })],
    ["recipient.meta_fields.a", triggerWith({ a: null })],
    ["recipient.meta_fields.a", triggerWith({ a: ["b"] })],
    ["recipient.meta_fields.a", triggerWith({ a: { b: 1 } })],
    ["recipient.meta_fields.a", triggerWith({ a: 2 ** 53 })],
    ["recipient.meta_fields.a", triggerWith({ a: Number.POSITIVE_INFINITY })],
    ["recipient.meta_fields.a", triggerWith({ a: "x".repeat(1_001) })],
    ["recipient.meta_fields.a", triggerWith({ a: "\ud800" })],
    ["recipient.meta_fields", triggerWith({ ["n".repeat(101)]: 1 })],
    ["recipient", triggerWith({}, { recipient: { meta_fields: { phone_number: "+15551234567" }, more: 1 } })],
    ["recipient", triggerWith({}, { recipient: undefined })],
    ["language", triggerWith({}, { language: "en_GB" })],
    ["language", triggerWith({}, { language: "e" })],
    ["language", triggerWith({}, { language: "" })],
    ["campaign_key", triggerWith({}, { campaign_key: "a b" })],
    ["campaign_key", triggerWith({}, { campaign_key: "a".repeat(129) })],
    ["", triggerWith({}, { recipients: [] })],
  ])("is refused for its %s (%#)", (path, body) => {
    const [issue] = smsTriggerSchema.safeParse(body).error?.issues ?? [];
    expect(issue?.path.join(".")).toBe(path);
  });

  it("is not looked at field by field when it has too many", () => {
    const fields = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`f${at}`, null]));
    expect(smsTriggerSchema.safeParse(triggerWith(fields)).error?.issues).toMatchObject([
      { path: ["recipient", "meta_fields"], message: "must have at most 50 fields" },
    ]);
  });

  it("says what is wrong with a further field", () => {
    const messageFor = (a: unknown) =>
      smsTriggerSchema.safeParse(triggerWith({ a })).error?.issues[0]?.message;
    expect(messageFor(null)).toBe("must be a string, a number or a boolean");
    expect(messageFor(1e300)).toBe("is beyond what a number carries exactly: send a string");
    expect(messageFor("x".repeat(2_000))).toBe("must have at most 1000 characters");
  });

  it("becomes an event that fits its schema, below the size of a message", () => {
    const requestedAt = 1_791_072_000_123_000;
    const longest = Object.fromEntries(
      Array.from({ length: 49 }, (_, at) => [`${at}`.padEnd(100, "\u0001"), "\u0001".repeat(1_000)]),
    );
    const trigger = smsTriggerSchema.parse(triggerWith(longest));
    const event = smsTriggerEvent({ id: "e-1", clientId: "acme", trigger, requestedAt });
    expect(smsTriggerEventSchema.strict().parse(event)).toEqual(event);
    expect(event).toMatchObject({
      id: "e-1",
      time: "2026-10-04T00:00:00.123000Z",
      subject: "spring",
      clientid: "acme",
      data: { client_id: "acme", requested_at: "2026-10-04T00:00:00.123000Z", recipient: trigger.recipient },
    });
    expect(smsTriggerBusKey(event)).toBe("acme:+15551234567");
    expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(900_000);
  });
});
