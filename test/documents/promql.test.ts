import { expect, it } from "vitest";
import { readExposition } from "./exposition.ts";
import { readQuery } from "./promql.ts";

it("reads what a query names", () => {
  const text =
    'sum by (le, a) (rate(x_bucket{job="j",b=~"$c"}[$__rate_interval])) > 2 unless on (n) (y:z offset 1h)';
  expect(readQuery(text)).toEqual({
    selectors: [
      {
        metric: "x_bucket",
        matchers: [
          { label: "job", op: "=", value: "j" },
          { label: "b", op: "=~", value: "$c" },
        ],
      },
      { metric: "y:z", matchers: [] },
    ],
    labels: ["le", "a", "n"],
  });
});

it.each(["sum by (a (b)", "rate(x[5m]", "x{a=}", ""])("refuses %j", (text) => {
  expect(() => readQuery(text)).toThrow("not PromQL");
});

it("reads what a process exposes", () => {
  const text = `# HELP a_total help
# TYPE a_total counter
a_total{reason="x \\"y\\", {z}",service="s"} 1
# TYPE h_seconds histogram
h_seconds_bucket{le="+Inf",service="s",route="/r"} 2
h_seconds_sum{service="s",route="/r"} 2.5
# TYPE empty gauge
`;
  const found = readExposition(text, ["service"]);
  expect([...found.values()].map(({ name, type, labels }) => [name, type, [...labels.keys()]])).toEqual([
    ["a_total", "counter", ["reason"]],
    ["h_seconds", "histogram", ["route"]],
    ["empty", "gauge", []],
  ]);
});
