import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

// Runs in a pod: reads pages and lines endlessly, and prints what it saw every second.

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string };

const { API = "", KEY = "", PORT = "" } = process.env;
const PAUSE_MS = 100;
/** Without any bytes; lines of a large window take longer as a whole. */
const TIMEOUT_MS = 20_000;
const WINDOW = "created_since=2000-01-01T00:00:00Z&created_to=2100-01-01T00:00:00Z";

const statuses: Record<string, number> = {};
let broken = 0;
let wrong = 0;
let watermark: number | null = null;
let said: string[] = [];

const ask = (url: string, agent: Agent | false, accept: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${KEY}`, accept };
    const sent = request(url, { agent, headers, timeout: TIMEOUT_MS }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => (body += text));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    sent.on("timeout", () => sent.destroy(new Error("silent")));
    sent.on("error", reject);
    sent.end();
  });

const checkLines = (body: string): string | null => {
  const lines = body.trimEnd().split("\n");
  const last = JSON.parse(lines.at(-1) ?? "{}") as { trailer?: { count: number } };
  return last.trailer?.count === lines.length - 1 ? null : `${lines.length} lines without their trailer`;
};

const askOnce = async (url: string, first: string, agent: Agent | false, accept: string): Promise<string> => {
  const from = Date.now();
  let answer: Answer;
  try {
    answer = await ask(url, agent, accept);
  } catch (error) {
    broken += 1;
    said.push(`${(error as { code?: string }).code ?? String(error)} after ${Date.now() - from} ms`);
    return url;
  }
  const { status, headers, body } = answer;
  statuses[status] = (statuses[status] ?? 0) + 1;
  if (status === 200) {
    const at = Date.parse(String(headers["x-export-watermark"]));
    if (at > (watermark ?? 0)) watermark = at;
    if (accept === "application/json") {
      const { meta } = JSON.parse(body) as { meta: { next_page_uri: string | null } };
      return meta.next_page_uri ?? first;
    }
    const problem = checkLines(body);
    if (problem !== null) {
      broken += 1;
      said.push(problem);
    }
    return first;
  }
  const seconds = Number(headers["retry-after"] ?? NaN);
  if ((status === 429 || status === 503) && seconds >= 0) {
    await sleep(Math.min(seconds, 2) * 1000);
    return url;
  }
  said.push(`${status} ${body.slice(0, 300)}`);
  wrong += 1;
  return first;
};

const askForEver = async (first: string, agent: Agent | false, accept: string): Promise<never> => {
  for (let url = first; ; await sleep(PAUSE_MS)) url = await askOnce(url, first, agent, accept);
};

setInterval(() => {
  const age = watermark === null ? null : Date.now() - watermark;
  console.log(JSON.stringify({ at: Date.now(), statuses, broken, wrong, age, said }));
  said = [];
}, 1000);
createServer((socket) => socket.end()).listen(Number(PORT));

const [conversations, messages] = ["conversations", "messages"].map(
  (list) => `${API}/v2/export/${list}?${WINDOW}`,
);
const kept = new Agent({ keepAlive: true });
await Promise.all([
  askForEver(`${conversations}&page_size=100`, kept, "application/json"),
  // A connection per page, as a balancer would spread them.
  askForEver(`${messages}&page_size=500`, false, "application/json"),
  askForEver(`${conversations}`, kept, "application/x-ndjson"),
]);
