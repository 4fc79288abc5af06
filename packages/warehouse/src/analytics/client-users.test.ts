import { expect, it } from "vitest";
import { type ProfileElement, settingsOfUser } from "./client-users.ts";

const NONE = { user: null, profile: null, inherits: null, setting: null, value: null };
const line = (given: Partial<ProfileElement>): ProfileElement => ({ ...NONE, ...given });

it("finds what is set for a user, along its profiles", () => {
  const elements = [
    line({ profile: "default", setting: "max_threads", value: "8" }),
    line({ profile: "analyst", setting: "max_memory_usage", value: "1" }),
    line({ profile: "analyst", setting: "readonly", value: "2" }),
    line({ profile: "client", inherits: "analyst" }),
    line({ profile: "client", setting: "readonly", value: "1" }),
    line({ user: "client_acme", inherits: "client" }),
    line({ user: "client_acme", setting: "max_memory_usage", value: "2" }),
    line({ user: "client_acme", setting: "max_threads" }),
    line({ user: "client_globex", setting: "readonly", value: "0" }),
  ];
  expect(settingsOfUser("client_acme", elements)).toEqual({
    max_threads: "8",
    readonly: "1",
    max_memory_usage: "2",
  });
});

it("ends where profiles name each other", () => {
  const elements = [
    line({ profile: "a", inherits: "b" }),
    line({ profile: "b", inherits: "a" }),
    line({ profile: "b", setting: "readonly", value: "1" }),
    line({ user: "u", inherits: "a" }),
  ];
  expect(settingsOfUser("u", elements)).toEqual({ readonly: "1" });
});
