import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";

export type { Counter, Gauge, Histogram };

/** A name may be registered once. */
export type Metrics = {
  counter<L extends string = never>(name: string, help: string, labels?: readonly L[]): Counter<L>;
  gauge<L extends string = never>(
    name: string,
    help: string,
    labels?: readonly L[],
    collect?: (gauge: Gauge<L>) => void | Promise<void>,
  ): Gauge<L>;
  histogram<L extends string = never>(
    name: string,
    help: string,
    labels: readonly L[],
    buckets: readonly number[],
  ): Histogram<L>;
  text(): Promise<string>;
  readonly contentType: string;
};

/** `withProcess` starts timers, which run until the process ends. */
export const createMetrics = (deps: { service: string; withProcess?: boolean }): Metrics => {
  const registry = new Registry();
  registry.setDefaultLabels({ service: deps.service });
  if (deps.withProcess) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    counter: (name, help, labels = []) => new Counter({ name, help, labelNames: labels, registers }),
    gauge: <L extends string = never>(
      name: string,
      help: string,
      labels: readonly L[] = [],
      collect?: (gauge: Gauge<L>) => void | Promise<void>,
    ) => {
      const gauge: Gauge<L> = new Gauge({
        name,
        help,
        labelNames: labels,
        registers,
        ...(collect && { collect: () => collect(gauge) }),
      });
      return gauge;
    },
    histogram: (name, help, labels, buckets) =>
      new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
};
