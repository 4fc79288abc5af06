// Made from the OpenAPI document of the service: see services/export-api/src/openapi/client-types.test.ts.

export type Conversation = {
  /** ID of the conversation */
  readonly _id: string;
  /** IDs of the human agents who took part */
  readonly agent_id: readonly (string | null)[];
  /** Their names, in the same order */
  readonly agent_name: readonly (string | null)[];
  /** Seconds that human agents took */
  readonly agent_handle_time: number | null;
  /** Seconds that the AI agent took */
  readonly bot_handle_time: number | null;
  /** Resolved or Not Resolved */
  readonly automated_resolution_classification: string | null;
  /** Why it was classified so */
  readonly automated_resolution_classification_reason: string | null;
  /** Browser of the chatter */
  readonly browser: string | null;
  /** Version of the browser */
  readonly browser_version: string | null;
  /** Change set that the conversation ran against; baseline for the published configuration */
  readonly changeset_id: string | null;
  /** ID of the chatter */
  readonly chatter_id: string | null;
  /** Topics and their Intents */
  readonly classifications: readonly {
    /** ID of the Topic */
    readonly topic_id: string | null;
    /** Name of the Topic */
    readonly topic_name: string | null;
    /** Intents of the Topic */
    readonly intents: readonly {
      /** ID of the Intent */
      readonly intent_id: string | null;
      /** Name of the Intent */
      readonly intent_name: string | null;
      /** Such as active */
      readonly status: string | null;
    }[];
  }[];
  /** Answers of the satisfaction survey. Seen keys: comment, feedback, is_positive, resolved, score, style, survey_type, customer_effort_score, ces_max, net_promoter_score */
  readonly csat: { readonly [name: string]: unknown } | null;
  /** When the conversation began */
  readonly date_created: string;
  /** When it last changed */
  readonly date_updated: string;
  /** Device of the chatter */
  readonly device: string | null;
  /** ID of the end user, whose profile the end users' list has */
  readonly end_user_id: string | null;
  /** ID of the generated topic */
  readonly generated_topic_id: string | null;
  /** Title of the generated topic */
  readonly generated_topic_label: string | null;
  /** ID of the generated topic, second generation */
  readonly generated_topic_v2_id: string | null;
  /** Title of that topic */
  readonly generated_topic_v2_title: string | null;
  /** Description of that topic */
  readonly generated_topic_v2_desc: string | null;
  /** ID of the category that holds that topic */
  readonly generated_topic_v2_parent_id: string | null;
  /** Generated summary of what was asked */
  readonly inquiry_summary: string | null;
  /** Whether the chatter talked with the bot */
  readonly is_engaged: boolean | null;
  /** Whether the chatter was escalated to a human agent */
  readonly is_escalated: boolean | null;
  /** Whether a test user began the conversation */
  readonly is_test_user: boolean | null;
  /** Language of the chatter */
  readonly language: string | null;
  /** ID of the human agent who handled it last; null when there was none */
  readonly last_agent_id: string | null;
  /** Name of that agent */
  readonly last_agent_name: string | null;
  /** Metavariables and their values */
  readonly metavariables: { readonly [name: string]: unknown };
  /** Channel that OAuth went through */
  readonly oauth_channel: string | null;
  /** Platform that the conversation took place on */
  readonly platform: string | null;
  /** When the record was stored by this service */
  readonly record_last_updated: string;
  /** Coaching that was applied */
  readonly used_coaching: readonly {
    /** ID of the coaching event */
    readonly id: string | null;
    /** What was coached */
    readonly entity_name: string | null;
    /** Kind of coaching */
    readonly coaching_type: string | null;
    /** What was to be done */
    readonly coaching_instructions: string | null;
    /** The intent it is for */
    readonly coaching_intent: string | null;
  }[];
  /** Articles that were referred to */
  readonly used_articles: readonly {
    /** ID of the article */
    readonly id: string | null;
    /** Title of the article */
    readonly name: string | null;
    /** Address of the article */
    readonly url: string | null;
    /** Where the article comes from */
    readonly source: string | null;
  }[];
  /** The latest attempt of each handoff that the AI agent began, in the order of time; is_escalated says whether one led to an escalation */
  readonly handoffs: readonly {
    /** Name of the handoff */
    readonly name: string | null;
    /** ID of the handoff: what distinguishes attempts; it need not match a configured one */
    readonly handoff_id: string | null;
    /** ID of the attempt; it stays the same in later exports */
    readonly id: string;
    /** Time the handoff was invoked */
    readonly date_created: string;
    /** How the attempt ended, such as succeeded or failed */
    readonly outcome_status: string | null;
    /** What led to the handoff: tool_failed, end_user_requested, out_of_scope, tool_unavailable, knowledge_unavailable, issue_unresolved, handoff_configured, other, system_failed, unclassified or null */
    readonly reason_code: string | null;
    /** What speaks for the handoff, redacted as the client wishes */
    readonly reasoning: string | null;
  }[];
  /** Playbooks that were run */
  readonly used_playbooks: readonly {
    /** ID of the Playbook */
    readonly id: string | null;
    /** Name of the Playbook */
    readonly name: string | null;
    /** ID of this run */
    readonly playbook_execution_id: string | null;
    /** How the run ended */
    readonly outcome_status: string | null;
  }[];
  /** MCP tools that were invoked */
  readonly used_mcp: readonly {
    /** ID of the invocation */
    readonly id: string | null;
    /** ID of the tool; null for invocations from before it was kept */
    readonly tool_id: string | null;
    /** ID of the connection */
    readonly connection_id: string | null;
    /** Name of the connection */
    readonly connection_name: string | null;
    /** Name of the tool */
    readonly tool_name: string | null;
    /** How the invocation ended */
    readonly outcome_status: string | null;
  }[];
  /** Variables and their last values */
  readonly variables: { readonly [name: string]: unknown };
};

export type Message = {
  /** ID of the message */
  readonly _id: string;
  /** ID of the answer that the message came from; null when the bot did not send it, the text None when a generative bot did */
  readonly answer_id: string | null;
  /** Title of that answer */
  readonly answer_title: string | null;
  /** ID of the chatter */
  readonly chatter_id: string | null;
  /** ID of the conversation that the message belongs to */
  readonly conversation_id: string;
  /** When the message was made */
  readonly date_created: string;
  /** Whether the link in the answer was followed */
  readonly link_was_clicked: boolean | null;
  /** Content of the message. Its form depends on `_type`: greeting, text, picture, quick_replies, trigger, meta, link, web_window, csat_shown or csat; the text is in `body` */
  readonly message_data: { readonly [name: string]: unknown } | null;
  /** ID of the chatter, or a word for the agent, the bot or the platform */
  readonly recipient: string | null;
  /** When the record was stored by this service */
  readonly record_last_updated: string;
  /** Rating of the answer by the chatter, 0 to 5 */
  readonly review: number | null;
  /** As for recipient */
  readonly sender: string | null;
  /** ID of the message that this one answers; the text None when it answers none */
  readonly in_response_to: string | null;
};

export type EndUser = {
  /** ID of the end user */
  readonly end_user_id: string;
  /** What is known about the person */
  readonly profile: {
    /** First name */
    readonly first_name?: string | null;
    /** Last name */
    readonly last_name?: string | null;
    /** Name to show */
    readonly display_name?: string | null;
    /** Address of a picture */
    readonly avatar?: string | null;
    /** E-mail address */
    readonly email?: string | null;
    /** Locale, such as en-US */
    readonly language?: string | null;
    /** Values of the client's own: text, numbers and truth values */
    readonly metadata?: { readonly [name: string]: unknown };
    /** IDs of the person in other systems */
    readonly system_properties?: { readonly [name: string]: unknown };
  };
  /** When the profile was made */
  readonly created_at: string;
  /** When it last changed */
  readonly updated_at: string;
};

export type ConversationsQuery = {
  /** Records created at this time or later. Either this or `updated_since` is required; they exclude each other */
  readonly created_since?: string;
  /** Records created earlier than this. Without it: 7 days after `created_since`. Needs `created_since` */
  readonly created_to?: string | null;
  /** The largest number of records in a page */
  readonly page_size?: number;
  /** The place after which the page starts, as a link carries it; it fits no other request */
  readonly cursor?: string | null;
  /** Records updated at this time or later, in the order of their updates */
  readonly updated_since?: string;
  /** Records updated earlier than this. Without it: 7 days after `updated_since`. Needs `updated_since` */
  readonly updated_to?: string | null;
};

export type MessagesQuery = {
  /** Records created at this time or later */
  readonly created_since: string;
  /** Records created earlier than this. Without it: 7 days after `created_since`. Needs `created_since` */
  readonly created_to?: string | null;
  /** The largest number of records in a page */
  readonly page_size?: number;
  /** The place after which the page starts, as a link carries it; it fits no other request */
  readonly cursor?: string | null;
  /** Only messages of this conversation */
  readonly conversation_id?: string | null;
};

export type EndUsersQuery = {
  /** The largest number of records in a page */
  readonly limit?: number;
  /** The id at which the page starts, that one included; the link to the next page carries it */
  readonly cursor?: string;
  /** Only the people whom another system knows by this id, one of `system_properties` */
  readonly external_id?: string;
};

export type ChangesQuery = {
  /** `next_cursor` of the answer before, never made by hand; without it the reader begins */
  readonly cursor?: string | null;
  /** Where a reader begins: only records that changed at this time or later; by default with everything */
  readonly stored_since?: string;
  /** The largest number of records in a page */
  readonly page_size?: number;
};

export type DataSubjectRequest = {
  /** What is to be done with the person's data */
  readonly type: "ERASURE";
  /** The person's e-mail address */
  readonly email?: string | null;
  /** Further identifiers of the person */
  readonly identifiers?:
    | readonly (
        | {
            readonly type: "email";
            readonly value: string;
          }
        | {
            readonly type: "chatter_id";
            readonly value: string;
          }
        | {
            readonly type: "end_user_id";
            readonly value: string;
          }
      )[]
    | null;
};

export type SmsTrigger = {
  /** The key of a campaign that is registered for the client */
  readonly campaign_key: string;
  /** BCP 47 tag of the language to write in */
  readonly language: string;
  /** Whom to write to */
  readonly recipient: {
    readonly meta_fields: {
      /** E.164 */
      readonly phone_number: string;
    } & { readonly [name: string]: string | number | boolean };
  };
};

export type Error = {
  readonly errors: readonly {
    readonly type:
      | "bad_request"
      | "unauthorized"
      | "authorization_error"
      | "resource_not_found"
      | "duplicate_resource"
      | "content_too_large"
      | "unprocessable_content"
      | "rate_limit_exceeded"
      | "internal_server_error";
    readonly message: string;
    /** Names what is wrong, or null */
    readonly details: string | null;
  }[];
};

export type DeletedRecord = {
  readonly _id: string;
  readonly deleted: true;
  readonly deleted_at: string;
};

export type DeletedEndUser = {
  readonly end_user_id: string;
  readonly deleted: true;
  readonly deleted_at: string;
};

export type DataSubjectRequestEntry = {
  readonly request_id: string;
  readonly type: "ERASURE";
  readonly status:
    | "received"
    | "queued"
    | "awaiting_approval"
    | "approved"
    | "running"
    | "refused"
    | "failed"
    | "completed";
  readonly received_at: string;
  readonly updated_at: string;
  /** When the request is overdue unless it is finished */
  readonly deadline: string;
};

export type DataSubjectRequestStatus = {
  readonly request_id: string;
  /** What is to be done with the person's data */
  readonly type: "ERASURE";
  readonly email: string | null;
  /** Absent when there are none */
  readonly identifiers?: readonly {
    readonly type: "email" | "chatter_id" | "end_user_id";
    readonly value: string;
  }[];
  /** How far the request has come */
  readonly status:
    | "received"
    | "queued"
    | "awaiting_approval"
    | "approved"
    | "running"
    | "refused"
    | "failed"
    | "completed";
  readonly received_at: string;
  readonly updated_at: string;
  /** Since when no list gives out what the request is about; its rows are removed later */
  readonly hidden_since?: string;
  /** Of a completed request */
  readonly receipt?: ErasureReceipt;
};

export type ErasureReceipt = {
  /** When no row was found any more */
  readonly verified_at: string;
  /** By table, all versions of records included; a row that several requests reach counts for each */
  readonly deleted_rows: { readonly [name: string]: number };
  readonly not_reached: readonly {
    readonly place: string;
    readonly until: string;
  }[];
};
