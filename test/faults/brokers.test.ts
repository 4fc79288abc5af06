import { setTimeout as sleep } from "node:timers/promises";
import { createProducer, type Producer } from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import kafkajs, { type Admin, type Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { getPage, walk } from "../compare/walk.ts";
import { handMade } from "../sample/hand-made.ts";
import { createRandom } from "../sample/values/random.ts";
import type { BusEvent } from "../sample/index.ts";
import { type KafkaCluster, startKafkaCluster } from "../system/kafka-cluster.ts";
import { readTopics } from "../system/read-topics.ts";
import { readMetric } from "../system/metrics-text.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { GROUP, startSystem, type System, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";
import { stopProcess } from "../system/stop-process.ts";
import { whileStopped } from "../system/while-stopped.ts";

const BROKERS = 3;
const OFFSETS = "__consumer_offsets";
const OFFSETS_PARTITIONS = 4;
const EVENT_TOPICS = [TOPICS.conversation, TOPICS.message];
const EVERYTHING = "created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z";
const SESSION_MS = bySize(3_000, 9_000);
const PROPERTIES = {
  "min.insync.replicas": "2",
  "offsets.topic.replication.factor": String(BROKERS),
  "offsets.topic.num.partitions": String(OFFSETS_PARTITIONS),
  "broker.session.timeout.ms": String(SESSION_MS),
  "broker.heartbeat.interval.ms": String(SESSION_MS / 10),
};
const PAUSE_MS = bySize(150, 100);

type List = "conversations" | "messages";
/** `ackedAt` is null until all in-sync replicas have the event. */
type Published = {
  readonly list: List;
  readonly id: string;
  readonly text: string;
  readonly poison: boolean;
  ackedAt: number | null;
};

let system: System;
let cluster: KafkaCluster;
let kafka: Kafka;
let admin: Admin;
let probing: Producer;
let seed: string;
let ingests: ServiceProcess[];
const keys = new Map<string, string>();
const published: Published[] = [];
const log = createLogger({ service: "test", level: "silent" });

let startedAt = 0;
/** Whole milliseconds, so that two events of a record never share an instant. */
let lastTime = 0;
const nextTime = (): string => {
  lastTime = Math.max(lastTime + 1, Date.now());
  return new Date(lastTime).toISOString();
};

const make = (
  list: List,
  client: string,
  id: string,
  text: string,
  poison = false,
): { event: BusEvent; note: Published } => {
  const data = {
    _id: id,
    date_created: new Date(startedAt + Number(/\d+$/.exec(id)?.[0] ?? 0)).toISOString(),
  };
  const event = handMade({
    kind: list === "conversations" ? "conversation" : "message",
    client,
    id,
    time: nextTime(),
    data:
      list === "conversations"
        ? { ...data, inquiry_summary: text }
        : { ...data, conversation_id: "of-brokers", message_data: { body: text } },
  });
  const value = poison ? Buffer.from(event.value ?? "").subarray(1) : event.value;
  return { event: { ...event, value }, note: { list, id, text, poison, ackedAt: null } };
};

const createPublisher = (options: {
  readonly name: string;
  readonly repeats: boolean;
  readonly poison: boolean;
  readonly send: (topic: string, events: readonly BusEvent[]) => Promise<void>;
}) => {
  const { name, repeats, poison, send } = options;
  const random = createRandom(`${seed}-${name}`);
  const refusals = new Map<string, number>();
  const known: string[] = [];
  let isOver = false;
  let next = 0;

  const publish = async (list: List, made: readonly ReturnType<typeof make>[]): Promise<void> => {
    published.push(...made.map(({ note }) => note));
    try {
      await send(
        list,
        made.map(({ event }) => event),
      );
      for (const { note } of made) note.ackedAt = Date.now();
    } catch (error) {
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      const type = (cause as { type?: string }).type ?? (cause as Error).name;
      refusals.set(type, (refusals.get(type) ?? 0) + made.length);
    }
  };

  const turn = async (): Promise<void> => {
    const fresh = (list: List, isPoison = false) =>
      make(list, "acme", `${isPoison ? "poison" : name}-${list[0]}-${next++}`, `first of ${name}`, isPoison);
    const conversations = [fresh("conversations"), fresh("conversations")];
    if (repeats && known.length > 0)
      conversations.push(make("conversations", "acme", random.pick(known), `again ${next}`));
    known.push(...conversations.slice(0, 2).map(({ note }) => note.id));
    const messages = [fresh("messages"), fresh("messages"), fresh("messages")];
    if (poison && random.chance(0.3)) conversations.push(fresh("conversations", true));
    if (poison && random.chance(0.1)) messages.push(fresh("messages", true));
    const lists = [
      ["conversations", conversations],
      ["messages", messages],
    ] as const;
    // kafkajs may drop part of a request when leaders move; a single event has no parts.
    await Promise.all(
      lists.flatMap(([list, made]) =>
        name === "brief" ? made.map((one) => publish(list, [one])) : [publish(list, made)],
      ),
    );
  };

  const running = (async () => {
    while (!isOver) {
      await turn();
      await sleep(PAUSE_MS);
    }
  })();
  return {
    refused: (type: string) => refusals.get(type) ?? 0,
    refusals,
    stop: () => {
      isOver = true;
      return running;
    },
  };
};

/** Collects events acknowledged before the watermark of a list that lacks them. */
const createReader = () => {
  const broken: string[] = [];
  let isOver = false;
  let reads = 0;
  let advances = 0;
  let last = 0;
  const read = async (list: List): Promise<void> => {
    const url = `${system.apiUrl}/v2/export/${list}?${EVERYTHING}&page_size=10000`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${keys.get("acme")}` } });
    const text = await response.text();
    expect(response.status, text.slice(0, 300)).toBe(200);
    const watermark = Date.parse(response.headers.get("x-export-watermark") ?? "");
    reads += 1;
    if (list === "conversations" && watermark > last) {
      advances += 1;
      last = watermark;
    }
    const ids = new Set(Array.from(text.matchAll(/"_id":"([^"]+)"/g), ([, id]) => id));
    for (const one of published) {
      if (one.list !== list || one.poison || one.ackedAt === null || one.ackedAt >= watermark) continue;
      if (!ids.has(one.id))
        broken.push(`${one.id} acknowledged ${watermark - one.ackedAt} ms before the watermark`);
    }
  };
  const reading = (async () => {
    while (!isOver) {
      await read("conversations");
      await read("messages");
      await sleep(100);
    }
  })();
  return {
    broken,
    seen: () => ({ reads, advances }),
    stop: () => {
      isOver = true;
      return reading;
    },
  };
};

let steady: ReturnType<typeof createPublisher>;
let brief: ReturnType<typeof createPublisher>;
let reader: ReturnType<typeof createReader>;
let careful: Producer;
let careless: kafkajs.Producer;

beforeAll(async () => {
  seed = seedOfRun("brokers");
  startedAt = Date.now() - 3_600_000;
  system = await startSystem("test-brokers", {
    startKafka: async (dir) => {
      cluster = await startKafkaCluster(dir, { brokers: BROKERS, properties: PROPERTIES });
      return cluster;
    },
  });
  kafka = new kafkajs.Kafka({
    brokers: [...cluster.addresses],
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 2_000,
    retry: { initialRetryTime: 100, retries: 8 },
  });
  admin = kafka.admin();
  careful = createProducer({ brokers: cluster.addresses, clientId: "careful", log });
  probing = createProducer({ brokers: cluster.addresses, clientId: "probing", log });
  careless = kafka.producer({
    retry: { initialRetryTime: 100, retries: 1 },
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
  });
  await Promise.all([admin.connect(), careful.start(), probing.start(), careless.connect()]);
  for (const client of ["acme", "probe"]) keys.set(client, await system.key(client));
  const env = { BATCH_MAX_RECORDS: "500", BATCH_MAX_AGE_MS: "100", WATERMARK_INTERVAL_MS: "250" };
  const [one, other] = await Promise.all([
    system.another("ingest", env),
    system.another("ingest", env),
    system.service("export-api"),
  ]);
  ingests = [one.process, other.process];
  steady = createPublisher({
    name: "steady",
    repeats: true,
    poison: true,
    send: (topic, events) => careful.send(topic, events),
  });
  brief = createPublisher({
    name: "brief",
    repeats: false,
    poison: false,
    send: async (topic, events) => {
      const messages = events.map(({ key, value, headers }) => ({ key, value, headers }));
      await careless.send({ topic, acks: -1, messages });
    },
  });
  reader = createReader();
});
afterAll(async () => {
  await Promise.allSettled(
    [steady?.stop(), brief?.stop(), reader?.stop()].map((one) => Promise.race([one, sleep(1_000)])),
  );
  await Promise.allSettled([admin, careless].map((one) => one?.disconnect()));
  await Promise.allSettled([careful, probing].map((one) => one?.stop()));
  await system?.stop();
});

const brokerOf = (id: number): { pid: number; start(): Promise<void>; kill(): Promise<void> } => {
  const server = cluster.brokers.get(id);
  if (server?.pid === undefined) throw new Error(`broker ${id} does not run`);
  const { pid, start, kill } = server;
  return { pid, start, kill };
};

type Place = {
  readonly topic: string;
  readonly partition: number;
  readonly leader: number;
  readonly isr: number[];
};
const places = async (topics: readonly string[] = [...EVENT_TOPICS, OFFSETS]): Promise<Place[]> => {
  const { topics: found } = await admin.fetchTopicMetadata({ topics: [...topics] });
  return found.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionId, leader, isr }) => ({ topic: name, partition: partitionId, leader, isr })),
  );
};

/** The leader of the group's offsets partition; the hash of the group's name is Java's. */
const coordinator = async (): Promise<number> => {
  let hash = 0;
  for (const char of GROUP) hash = (Math.imul(31, hash) + char.charCodeAt(0)) | 0;
  const partition = (hash & 0x7fffffff) % OFFSETS_PARTITIONS;
  return (await places([OFFSETS])).find((one) => one.partition === partition)?.leader ?? -1;
};

const busiest = async (): Promise<number> => {
  const leads = Map.groupBy(await places(EVENT_TOPICS), ({ leader }) => leader);
  const [most] = [...leads].toSorted(([, one], [, other]) => other.length - one.length);
  return most?.[0] ?? -1;
};

const leadersMoved = (from: number): Promise<void> =>
  until(
    `broker ${from} leads nothing`,
    30_000,
    async () =>
      (await places().catch(() => null))?.every(({ leader }) => leader !== from && leader !== -1) ?? false,
  );
const allInSync = (): Promise<void> =>
  until("all replicas are in sync", 60_000, async () => {
    const all = await places([
      ...EVENT_TOPICS,
      OFFSETS,
      ...EVENT_TOPICS.map((topic) => `${topic}.dead-letter`),
    ]).catch(() => null);
    return all?.every(({ isr }) => isr.length === BROKERS) ?? false;
  });

const seconds = (from: number): string => ((performance.now() - from) / 1000).toFixed(1);

let probes = 0;
/** Seconds from `from` until new events on all partitions are acknowledged, and until all are readable. */
const probe = async (from: number): Promise<string> => {
  const since = (probes += 100);
  const sends = (["conversations", "messages"] as const).map((list) => {
    const events = Array.from({ length: system.partitions }, (_, partition) => {
      const { event } = make(list, "probe", `probe-${list[0]}-${since + partition}`, "probe");
      return { key: event.key, value: event.value, headers: event.headers, partition };
    });
    return probing.send(list, events);
  });
  await Promise.all(sends);
  const acknowledged = seconds(from);
  const created = new Date(startedAt + since).toISOString();
  for (const list of ["conversations", "messages"])
    await until(`the new events of ${list} are readable`, 60_000, async () => {
      const url = `${system.apiUrl}/v2/export/${list}?created_since=${created}`;
      return (await getPage(url, keys.get("probe") ?? "")).records.length === system.partitions;
    });
  return `acknowledged ${acknowledged} s and readable ${seconds(from)} s`;
};

const expectToGoOn = async (name: string, fault: () => Promise<string>): Promise<void> => {
  console.log(`brokers: ${name}: ${await fault()}`);
  const ended = await Promise.race([...ingests.map(({ exited }) => exited), Promise.resolve(null)]);
  expect(ended, "an ingest process that ended").toBeNull();
};

/** Seconds since a start of these brokers together. */
const restart = async (servers: readonly { start(): Promise<void> }[]): Promise<string> => {
  const started = performance.now();
  await Promise.all(servers.map(({ start }) => start()));
  const up = seconds(started);
  const line = await probe(started);
  return `${line} after the start of the brokers, which took ${up} s`;
};

describe("a cluster of three brokers under load", () => {
  afterEach(async () => {
    await allInSync();
    expect(reader.broken, "missing before the watermark").toEqual([]);
  });

  it("shows new events while all is well", async () => {
    await allInSync();
    await probe(performance.now());
    await expectToGoOn("all is well", () => probe(performance.now()));
  });

  it("goes on when the group's coordinator is killed, and when it comes back", async () => {
    const id = await coordinator();
    const { kill, start } = brokerOf(id);
    const led = (await places()).filter(({ leader }) => leader === id).length;
    await expectToGoOn(`kill of the coordinator, which led ${led} partitions`, async () => {
      const killed = performance.now();
      await kill();
      const line = await probe(killed);
      await leadersMoved(id);
      return `${line} after the kill`;
    });
    await expectToGoOn("it comes back", async () => {
      const started = performance.now();
      await start();
      await allInSync();
      return `in sync and ${await probe(started)} after its start`;
    });
  });

  it("goes on when a leader is paused for longer than its session and then believes that it still leads", async () => {
    const id = await busiest();
    const { pid } = brokerOf(id);
    const isCoordinator = (await coordinator()) === id;
    await expectToGoOn(`pause of the busiest leader${isCoordinator ? ", the coordinator" : ""}`, async () => {
      const paused = performance.now();
      await stopProcess(pid);
      try {
        await leadersMoved(id);
        const continued = performance.now();
        process.kill(pid, "SIGCONT");
        return `${await probe(continued)} after it went on, paused for ${((continued - paused) / 1000).toFixed(1)} s`;
      } finally {
        process.kill(pid, "SIGCONT");
      }
    });
  });

  it("goes on beside a broker that hangs and stays so", async () => {
    const id = await coordinator();
    const led = (await places(EVENT_TOPICS)).filter(({ leader }) => leader === id).length;
    await expectToGoOn(`the coordinator hangs, which led ${led} partitions of events`, async () => {
      const paused = performance.now();
      return whileStopped(brokerOf(id), async () => `${await probe(paused)} after it hung`);
    });
  });

  it("follows partitions that are moved to other brokers", async () => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [...EVENT_TOPICS] });
    const reassign = async (isLeaderIn: boolean): Promise<void> => {
      await admin.alterPartitionReassignments({
        topics: topics.map(({ name, partitions }) => ({
          topic: name,
          partitionAssignment: partitions.map(({ partitionId, leader, replicas }) => ({
            partition: partitionId,
            replicas: isLeaderIn
              ? [leader, ...replicas.filter((one) => one !== leader)]
              : replicas.filter((one) => one !== leader),
          })),
        })),
      });
      const wanted = isLeaderIn ? BROKERS : BROKERS - 1;
      await until(
        "the partitions are moved",
        60_000,
        async () =>
          (await places(EVENT_TOPICS).catch(() => null))?.every(({ isr }) => isr.length === wanted) ?? false,
      );
    };
    await expectToGoOn("reassignment of every partition away from its leader", async () => {
      const began = performance.now();
      await reassign(false);
      return `${await probe(began)} after its begin`;
    });
    await expectToGoOn("and a new copy there", async () => {
      const began = performance.now();
      await reassign(true);
      return `${await probe(began)} after its begin`;
    });
  });

  it("waits while too few replicas are in sync, its dead letters too, and goes on by itself", async () => {
    const [first = 0, second = 0] = [...cluster.brokers.keys()].filter((id) => id % 2 === 0);
    const servers = [brokerOf(first), brokerOf(second)];
    const deadLetters = `${TOPICS.conversation}.dead-letter`;
    const setNeeded = (count: number) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [
          {
            type: kafkajs.ConfigResourceTypes.TOPIC,
            name: deadLetters,
            configEntries: [
              { name: "min.insync.replicas", value: String(count) },
              { name: "max.message.bytes", value: "2097176" },
              { name: "message.timestamp.type", value: "LogAppendTime" },
            ],
          },
        ],
      });
    await expectToGoOn("dead letters are refused, then everything", async () => {
      await setNeeded(BROKERS);
      await servers[0]?.kill();
      await leadersMoved(first);
      await until("a batch with a dead letter waits", 60_000, async () => {
        const ages = await Promise.all(
          ingests.map(({ metricsUrl }) =>
            readMetric(metricsUrl, "conversation_export_ingest_oldest_unflushed_age_seconds"),
          ),
        );
        return Math.max(...ages.map((age) => age ?? 0)) > 5;
      });
      const refused = brief.refused("NOT_ENOUGH_REPLICAS");
      await servers[1]?.kill();
      await until("producers are refused", 60_000, () => brief.refused("NOT_ENOUGH_REPLICAS") > refused + 10);
      await setNeeded(2);
      return restart(servers);
    });
  });

  it("goes on after all brokers were killed", async () => {
    const servers = [...cluster.brokers.keys()].map(brokerOf);
    await expectToGoOn("kill of all brokers", async () => {
      await Promise.all(servers.map(({ kill }) => kill()));
      return restart(servers);
    });
  });

  it("has lost nothing and shows nothing twice", async () => {
    await Promise.all([steady.stop(), brief.stop()]);
    await system.caughtUp(60_000);
    await reader.stop();
    const { reads, advances } = reader.seen();
    const acked = published.filter(({ ackedAt }) => ackedAt !== null);
    const poison = published.filter((one) => one.poison);
    const given = published.length - acked.length;
    console.log(
      `brokers: ${published.length} published, ${given} of them not acknowledged (${[...brief.refusals].map(([type, count]) => `${type} ${count}`).join(", ")}); ${reads} reads, ${advances} watermarks`,
    );
    expect(advances).toBeGreaterThan(5);
    for (const { metricsUrl } of ingests)
      expect((await readMetric(metricsUrl, "conversation_export_bus_offset_out_of_range_total")) ?? 0).toBe(
        0,
      );

    let unacknowledgedRead = 0;
    for (const list of ["conversations", "messages"] as const) {
      const texts = await walk(`${system.apiUrl}/v2/export/${list}?${EVERYTHING}`, keys.get("acme") ?? "");
      const records = texts.map(
        (text) =>
          JSON.parse(text) as { _id: string; inquiry_summary?: string; message_data?: { body: string } },
      );
      const read = new Map(
        records.map((record) => [record._id, record.inquiry_summary ?? record.message_data?.body]),
      );
      expect(records.length, `${list} read twice`).toBe(read.size);
      const good = published.filter((one) => one.list === list && !one.poison);
      const lasts = new Map(good.filter(({ ackedAt }) => ackedAt !== null).map(({ id, text }) => [id, text]));
      const wrong = [...lasts].filter(([id, text]) => read.get(id) !== text);
      expect(wrong, `${list} lost or old`).toEqual([]);
      const known = new Set(good.map(({ id }) => id));
      expect([...read.keys()].filter((id) => !known.has(id))).toEqual([]);
      unacknowledgedRead += [...read.keys()].filter((id) => !lasts.has(id)).length;
    }

    const topics = EVENT_TOPICS.map((topic) => `${topic}.dead-letter`);
    const bounds = await Promise.all(
      [...topics, ...EVENT_TOPICS].map((topic) => system.admin.fetchOffsets(topic)),
    );
    const count = (from: number, to: number) =>
      bounds
        .slice(from, to)
        .flat()
        .reduce((sum, { start, end }) => sum + end - start, 0);
    const found = await readTopics(
      { brokers: cluster.addresses, clientId: "dead-letters", log },
      topics,
      count(0, topics.length),
    );
    const places = found.map(
      ({ headers }) =>
        `${String(headers["dl-topic"])}/${String(headers["dl-partition"])}/${String(headers["dl-offset"])}`,
    );
    const perKey = Map.groupBy(found, ({ key }) => key?.toString() ?? "");
    const missing = poison.filter(({ id }) => !perKey.has(`acme:${id}`)).map(({ id }) => id);
    const repeated = places.length - new Set(places).size;
    console.log(
      `brokers: ${unacknowledgedRead} of those not acknowledged are readable; ${poison.length} poison events, ${found.length} dead letters, ${repeated} of them again; ${count(topics.length, 2 * topics.length)} events on the bus`,
    );
    expect(missing, "poison events without a dead letter").toEqual([]);
    // A dead letter is repeated only when its batch could not be committed.
    expect(perKey.size).toBe(poison.length);
  });
});
