import { z } from "zod";

const text = z.string();
const flag = z.boolean();
const whole = z.int();

/** By `_type` (specification 2.3); other keys are allowed. */
export const MESSAGE_SHAPES = {
  greeting: z.object({ external_chat_id: text, reviewable_message: flag }),
  text: z.object({
    body: text,
    has_variables: flag,
    reviewable_message: flag,
    has_forced_quick_replies: flag.optional(),
  }),
  picture: z.object({ alt_text: text, has_variables: flag, pic_url: text, reviewable_message: flag }),
  quick_replies: z.object({
    has_variables: flag,
    is_forced: flag,
    quick_replies: z.array(z.object({ button_type: text, label: text, target: text })),
    reviewable_message: flag,
  }),
  trigger: z.object({ body: text, button_type: text, external_chat_id: text, reviewable_message: flag }),
  meta: z.object({
    meta_message_type: text,
    meta_message_data: z.object({
      id: text,
      name: text,
      new_value: z.unknown(),
      old_value: z.unknown(),
      scope: text,
    }),
  }),
  link: z.object({
    alt_text: text,
    generate_link_preview: flag,
    has_variables: flag,
    is_handoff: flag,
    link_description: text,
    link_icon: text,
    link_text: text,
    new_window: flag,
    raw_url: text,
    reviewable_message: flag,
    title: text,
    url: text,
  }),
  web_window: z.object({
    has_forced_quick_replies: flag,
    has_variables: flag,
    is_handoff: flag,
    locked: flag,
    raw_url: text,
    reviewable_message: flag,
    window_button_label: text,
    window_height: whole,
    window_title: text,
    window_url: text,
    window_width: whole,
  }),
  csat_shown: z.object({ survey_type: text }),
  csat: z.object({ is_positive: flag, score: whole, style: text, survey_type: text }),
} as const;

const shapes: ReadonlyMap<unknown, z.ZodObject> = new Map(Object.entries(MESSAGE_SHAPES));

export function hasKnownShape(messageData: Readonly<Record<string, unknown>>): boolean {
  const shape = shapes.get(messageData["_type"]);
  return shape?.safeParse(messageData).success ?? false;
}
