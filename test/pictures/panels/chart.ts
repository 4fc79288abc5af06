import { type EChartsOption, init } from "echarts";
import { FAINT, FONT, LINE } from "../svg.ts";

const LABEL = { color: FAINT, fontSize: 12, fontFamily: FONT } as const;

/** An axis of values, written by `write`, with a tick every `step` where one is given. */
export const valueAxis = (
  write: (value: number) => string,
  { min, max, step }: Readonly<Record<"min" | "max" | "step", number | undefined>>,
) =>
  ({
    type: "value",
    scale: true,
    splitNumber: 4,
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(step === undefined ? {} : { interval: step }),
    axisLabel: { ...LABEL, formatter: write },
    splitLine: { lineStyle: { color: LINE } },
  }) as const;

/** Labels and lines of an axis without values. */
export const plainAxis = {
  axisLabel: LABEL,
  axisLine: { lineStyle: { color: LINE } },
  axisTick: { lineStyle: { color: LINE } },
  splitLine: { show: false },
} as const;

/** Draws a chart without a browser. */
export const drawChart = (
  option: EChartsOption,
  size: { readonly width: number; readonly height: number },
): string => {
  const chart = init(null, null, { renderer: "svg", ssr: true, ...size });
  chart.setOption({ animation: false, textStyle: { fontFamily: FONT }, useUTC: true, ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
};
