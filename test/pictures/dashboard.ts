import { readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../deploy/charts/conversation-export/files/dashboards");

/** How values are written and drawn; `custom` is what one type of panel adds. */
export type FieldSettings = {
  readonly unit?: string;
  readonly decimals?: number;
  readonly min?: number;
  readonly max?: number;
  readonly thresholds?: {
    readonly steps: readonly { readonly color: string; readonly value: number | null }[];
  };
  readonly custom?: {
    readonly drawStyle?: string;
    readonly fillOpacity?: number;
    readonly lineWidth?: number;
    readonly showPoints?: string;
    readonly stacking?: { readonly mode: string };
    readonly thresholdsStyle?: { readonly mode: string };
  };
};

/** A statement of SQL, or an expression of Prometheus with the name of its series. */
export type Target = {
  readonly refId: string;
  readonly rawSql?: string;
  readonly expr?: string;
  readonly legendFormat?: string;
};

export type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: {
    readonly defaults: FieldSettings;
    readonly overrides: readonly {
      readonly matcher: { readonly id: string; readonly options: string };
      readonly properties: readonly { readonly id: string; readonly value: unknown }[];
    }[];
  };
  readonly options?: {
    readonly orientation?: string;
    readonly graphMode?: string;
    readonly legend?: { readonly showLegend: boolean; readonly calcs: readonly string[] };
  };
  readonly targets?: readonly Target[];
};

export type Dashboard = {
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: string;
      readonly allValue?: string;
    }[];
  };
};

/** A dashboard of the chart, by its file. */
export const readDashboard = (file: string): Dashboard =>
  JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as Dashboard;

/** What the panel says of the field `name`: its defaults, and the overrides that name it. */
export const settingsOf = ({ title, fieldConfig }: Panel, name: string): FieldSettings => {
  const overrides = (fieldConfig?.overrides ?? []).filter(({ matcher }) => {
    if (matcher.id !== "byName") throw new Error(`panel "${title}": unknown matcher ${matcher.id}`);
    return matcher.options === name;
  });
  const changed = overrides.flatMap(({ properties }) => properties.map(({ id, value }) => [id, value]));
  return { ...fieldConfig?.defaults, ...(Object.fromEntries(changed) as FieldSettings) };
};
