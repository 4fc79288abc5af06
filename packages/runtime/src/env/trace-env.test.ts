import { describe, expect, it } from "vitest";
import { problemsOf } from "./problems.fixture.ts";
import { readTraceSettings } from "./trace-env.ts";

const URL = "OTEL_EXPORTER_OTLP_ENDPOINT";
const read = (env: Record<string, string>) => readTraceSettings(env, "conversation-export-ingest");

const problemOf = (env: Record<string, string>): string => problemsOf(() => read(env)).join("\n");

describe("readTraceSettings", () => {
  it("is off without an address", () => {
    expect(read({})).toBeNull();
    expect(read({ [URL]: "", OTEL_TRACES_SAMPLER_ARG: "1" })).toBeNull();
  });

  it("has defaults", () => {
    expect(read({ [URL]: "http://collector:4318" })).toEqual({
      url: "http://collector:4318/v1/traces",
      headers: {},
      ratio: 0.01,
      serviceName: "conversation-export-ingest",
      attributes: {},
    });
  });

  it("takes every variable", () => {
    expect(
      read({
        [URL]: "https://collector/otlp/",
        OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20x%3D, x-tenant = a",
        OTEL_TRACES_SAMPLER_ARG: "0.5",
        OTEL_SERVICE_NAME: "other",
        OTEL_RESOURCE_ATTRIBUTES: "k8s.pod.name=a-1,b=c=d,",
      }),
    ).toEqual({
      url: "https://collector/otlp/v1/traces",
      headers: { authorization: "Bearer x=", "x-tenant": "a" },
      ratio: 0.5,
      serviceName: "other",
      attributes: { "k8s.pod.name": "a-1", b: "c=d" },
    });
  });

  it.each([
    [URL, "collector:4318", "must be an address such as http://collector:4318"],
    [URL, "grpc://collector:4317", "must be an address such as http://collector:4318"],
    [URL, "http://collector/v1/traces", "must be the address without /v1/traces, which is added"],
    [URL, "http://me:word-1@collector", "must have no user, query or fragment"],
    [URL, "http://collector?key=word-1", "must have no user, query or fragment"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "word-1", "must be a list such as name=value,name=value"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a b=word-1", "must be a list such as name=value,name=value"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a=word-1%", "must be a list such as name=value,name=value"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a=word-1%0ab", "must hold what a header of HTTP may hold"],
    ["OTEL_TRACES_SAMPLER_ARG", "word-1", "must be a share from 0 to 1"],
    ["OTEL_TRACES_SAMPLER_ARG", "1.1", "must be a share from 0 to 1"],
    ["OTEL_RESOURCE_ATTRIBUTES", "=word-1", "must be a list such as name=value,name=value"],
  ])("refuses %s=%s", (name, value, problem) => {
    const reported = problemOf({ [name]: value });
    expect(reported).toContain(`${name}: `);
    expect(reported).toContain(problem);
    expect(reported).not.toContain("word-1");
  });
});
