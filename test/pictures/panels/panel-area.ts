import type { Answer } from "../answer.ts";
import type { Panel } from "../dashboard.ts";
import type { TimeRange } from "../fill-sql.ts";

/** The room below the title of a panel, in pixels, and the time that the dashboard shows. */
export type PanelArea = { readonly width: number; readonly height: number; readonly range: TimeRange };

/** Draws the content of a panel as SVG, from the corner of its area. */
export type DrawPanel = (panel: Panel, answer: Answer, area: PanelArea) => string;
