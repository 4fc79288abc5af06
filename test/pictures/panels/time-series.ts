import type { BarSeriesOption, LineSeriesOption } from "echarts";
import { type Series, seriesOf } from "../answer.ts";
import { type FieldSettings, settingsOf } from "../dashboard.ts";
import type { TimeRange } from "../fill-sql.ts";
import { colorOf, seriesColor } from "../svg.ts";
import { tickStep, writeValue } from "../units.ts";
import { drawChart, plainAxis, valueAxis } from "./chart.ts";
import { drawLegend } from "./legend.ts";
import type { DrawPanel } from "./panel-area.ts";

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "short", timeZone: "UTC" });
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const BAR_SHARE = 0.75;
const FEWEST = 10;
const LEGEND_SHARE = 0.45;
const MARGIN = { left: 8, right: 22, top: 10, bottom: 4 } as const;

type Drawn = LineSeriesOption | BarSeriesOption;

/** The shortest time between two points; a single point has the width of one among `FEWEST`. */
const stepOf = (series: readonly Series[], { from, to }: TimeRange): number => {
  const times = series[0]?.points.map(([time]) => time) ?? [];
  return Math.min((to - from) / FEWEST, ...times.slice(1).map((time, at) => time - (times[at] ?? 0)));
};

const seriesOption = (
  { name, points }: Series,
  { custom = {} }: FieldSettings,
  color: string,
  barWidth: number,
): Drawn => {
  const common = {
    name,
    data: points.map(([time, value]) => [time, value ?? "-"]),
    silent: true,
    emphasis: { disabled: true },
    itemStyle: { color },
    ...(custom.stacking?.mode === "normal" ? { stack: "all" } : {}),
  };
  const opacity = (custom.fillOpacity ?? 0) / 100;
  if (custom.drawStyle === "bars")
    return {
      ...common,
      type: "bar",
      barWidth,
      itemStyle: { ...common.itemStyle, opacity },
    };
  return {
    ...common,
    type: "line",
    symbol: custom.showPoints === "never" ? "none" : "circle",
    symbolSize: 4,
    lineStyle: { width: custom.lineWidth ?? 1 },
    areaStyle: { opacity },
  };
};

const thresholdLines = (thresholds: FieldSettings["thresholds"]): Drawn => ({
  type: "line",
  silent: true,
  markLine: {
    symbol: "none",
    silent: true,
    label: { show: false },
    data: (thresholds?.steps ?? []).flatMap(({ color, value }) =>
      value === null ? [] : [{ yAxis: value, lineStyle: { color: colorOf(color), type: "dashed" } }],
    ),
  },
});

/** Lines or bars over time, stacked where the panel says so, with the legend below. */
export const drawTimeSeries: DrawPanel = (panel, answer, { width, height, range }) => {
  const series = seriesOf(answer);
  const legend = drawLegend(panel, series, width, height * LEGEND_SHARE);
  const { unit, min, max, custom, thresholds } = settingsOf(panel, "");
  const step = stepOf(series, range);
  const most = Math.max(...series.flatMap(({ points }) => points.map(([, value]) => value ?? 0)));
  const ticks = min !== undefined && max !== undefined ? (max - min) / 4 : tickStep(most, unit);
  const isBars = custom?.drawStyle === "bars";
  const barWidth = (BAR_SHARE * (width - 60) * step) / (range.to - range.from);

  const chart = drawChart(
    {
      grid: { ...MARGIN, containLabel: true },
      xAxis: {
        ...plainAxis,
        type: "time",
        // Bars stand around their time: the first one would be cut in half.
        min: range.from - (isBars ? step / 2 : 0),
        max: range.to,
        minInterval: MINUTE_MS,
        axisLabel: {
          ...plainAxis.axisLabel,
          hideOverlap: true,
          formatter: (time: number) => (range.to - range.from < DAY_MS ? CLOCK : DAY).format(time),
        },
      },
      yAxis: valueAxis((value) => writeValue(value, unit), {
        min,
        max: max ?? (ticks === undefined ? undefined : Math.ceil(most / ticks) * ticks),
        step: ticks,
      }),
      series: [
        ...series.map((one, at) =>
          seriesOption(one, settingsOf(panel, one.field), seriesColor(at), barWidth),
        ),
        ...(custom?.thresholdsStyle?.mode === "line" ? [thresholdLines(thresholds)] : []),
      ],
    },
    { width, height: height - legend.height },
  );
  return `${chart}<g transform="translate(0 ${height - legend.height})">${legend.svg}</g>`;
};
