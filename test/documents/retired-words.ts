/** `allowed`: occurrences left under a path. */
export type RetiredWord = {
  readonly words: RegExp;
  readonly better: string;
  readonly allowed?: Readonly<Record<string, number>>;
};

export const RETIRED_WORDS: readonly RetiredWord[] = [
  {
    words: /customer(?!_effort|-support|_support|Effort|ror| asked for a person| for years)/,
    better: "client",
  },
  {
    words: /(?<!dead[-_ ]?|capital |small |lower-case |one |must be )letter(?!s, digits|s of (Unicode|\d+))/,
    better: "dead letter",
  },
  {
    words: /data subject request|data-subject requests?\b/,
    better: "erasure request",
  },
  {
    words:
      /refused (events?|messages?|records?)\b|\b(events?|messages?|records?) (is|are|was|were) (not )?refused/,
    better: "rejected",
  },
  {
    words: /(stored|upload) instant|upload_from/,
    better: "stored at, stable up to",
  },
  {
    words: /\bnoted?[ -](dates?|keys)|dates (of records )?(is|are) (not )?noted|\bno note\b|dates_noted/,
    better: "moved record, former date, known up to",
  },
  {
    words: /\bseveral(?=[A-Z_]|\.ts|-processes)|severalDates|\.several\b/,
    better: "moved records",
  },
  {
    words:
      /hidden (records?|rows?|messages?|conversations?)|\bhid(es?|ing) (records?|rows?)|hidden-(records|sql)/,
    better: "erased, pending deletion",
    allowed: {
      "docs/clickhouse.md": 1,
      "services/ops/": 1,
      "test/cluster/": 1,
      "test/integration/": 1,
    },
  },
  {
    words: /\bdoubts?|\bheed/,
    better: "exceptions, conditions, handle",
  },
  {
    words:
      /\b(is|are|was|were|be|been) told\b|\btells? (of|that|how|what|which|when|where|whether|nothing)\b/,
    better: "published, reported, shows",
  },
  {
    words: /\breigns?\b/,
    better: "server run",
  },
  {
    words: /\battend(?!ed|ance)/,
    better: "run background tasks, follow",
  },
  {
    words: /unusual/,
    better: "out of range, nonstandard",
    allowed: {
      "docs/erasure-and-sms.md": 1,
      "docs/logs.md": 1,
      "docs/security.md": 1,
    },
  },
  {
    words: /isSpread|spreadOver|spread(Settings|[ -]tables)/,
    better: "sharded",
  },
  {
    words: /\bstanding\b|stands? in\b/,
    better: "live, present; replaces",
  },
  {
    words: /\b(the|whole|export|HTTP) interface\b/,
    better: "export API",
    allowed: {
      "deploy/check/count-tests.ts": 1,
      "deploy/check/file-times.ts": 1,
      "test/system/shared-system.ts": 1,
    },
  },
  {
    words: /\bat hand\b|does no harm|\bshall\b|\bbesides\b|\bof before\b|belongs? into|cannot be asked/,
    better: "plain words: is there, is harmless, must, also, former, belongs to, does not answer",
  },
  {
    words:
      /settled(?=_age|-store|-watch|-ledger|Store|Watch|Reader|Ledger|Until)|(changes|read)[-_]?settled|settled instant/,
    better: "stable, stable up to",
  },
  {
    words: /\bcreate[A-Za-z]*Watch\b|[a-z]-watch(?=\.ts|\.test)|\bcreateAsking\b/,
    better: "monitor, poller, circuit breaker",
  },
  {
    words: /\bask-?for-?facts|\bfactsAtOnce\b|pages\.facts/,
    better: "conditions",
  },
];
