import { settingsOf } from "../dashboard.ts";
import { INK, seriesColor } from "../svg.ts";
import { writeValue } from "../units.ts";
import { drawChart, plainAxis, valueAxis } from "./chart.ts";
import type { DrawPanel } from "./panel-area.ts";

/** One bar for each row, from top to bottom, with its value behind it. */
export const drawBarChart: DrawPanel = (panel, { columns, rows }, { width, height }) => {
  if (panel.options?.orientation !== "horizontal")
    throw new Error(`panel "${panel.title}": only horizontal bars are drawn`);
  const nameAt = columns.findIndex(({ kind }) => kind === "text");
  const valueAt = columns.findIndex(({ kind }) => kind === "number");
  const { unit, decimals, custom } = settingsOf(panel, columns[valueAt]?.name ?? "");
  const write = (value: number): string => writeValue(value, unit, decimals);
  return drawChart(
    {
      // Wider than the measured labels: fonts differ between readers.
      grid: { left: 28, right: 44, top: 4, bottom: 4, containLabel: true },
      xAxis: valueAxis(write, { min: 0, max: undefined, step: undefined }),
      yAxis: {
        ...plainAxis,
        type: "category",
        inverse: true,
        data: rows.map((row) => String(row[nameAt])),
        axisLabel: { ...plainAxis.axisLabel, color: INK },
        axisTick: { show: false },
      },
      series: [
        {
          type: "bar",
          data: rows.map((row) => Number(row[valueAt])),
          barCategoryGap: "30%",
          silent: true,
          emphasis: { disabled: true },
          itemStyle: { color: seriesColor(0), opacity: (custom?.fillOpacity ?? 100) / 100 },
          label: {
            ...plainAxis.axisLabel,
            show: true,
            position: "right",
            color: INK,
            formatter: ({ value }) => write(Number(value)),
          },
        },
      ],
    },
    { width, height },
  );
};
