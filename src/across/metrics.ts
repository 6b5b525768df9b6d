import type { Env } from '../config';
import { isWithin } from '../durable/backoff';
import { perDeployment } from '../durable/memory';
import { inParallel } from '../durable/parallel';
import { notFound, unwrap } from '../job/errors';
import { type Meter, read, sum } from '../metrics/meter';
import type { Point } from '../metrics/series';
import { awakeAmong } from '../rpc/awake-queues';
import type { WorkerSummary } from '../rpc/directory';
import type { PointsRequest, QueueActivity, QueueReading } from '../rpc/metrics';
import { directoryObject, queueObject } from '../rpc/stubs';
import { nextQueues } from './queues';

export interface Reading {
  queues: QueueReading[];
  total: number;
  workers: WorkerSummary;
  /** Epoch ms. */
  at: number;
}

/** The queues that are asked: the one that is named, else as many as one request may ask. @throws {ApiError} 404 */
async function asked(env: Env, queue: string | undefined): Promise<string[]> {
  if (queue === undefined) return (await nextQueues(env, undefined)).names;
  const [known] = (await nextQueues(env, undefined, [queue])).names;
  return known === undefined ? [] : [known];
}

/** Queues that the directory is asked about at a time: it answers with all their counts. */
const AT_A_TIME = 50;

/** The numbers of these queues: the directory knows those of queues without changes since they were asked. */
async function readQueues(env: Env, names: readonly string[]): Promise<QueueReading[]> {
  const pages: string[][] = [];
  for (let at = 0; at < names.length; at += AT_A_TIME) pages.push(names.slice(at, at + AT_A_TIME));
  const now = Date.now();
  const readings = await inParallel(pages, async (page) =>
    unwrap(await directoryObject(env).readings(page, awakeAmong(page, now))),
  );
  return readings.flat();
}

/** Asks the queues, and how many workers there are. @throws {ApiError} 404 when there is no queue of that name */
export async function readMetrics(env: Env, queue?: string): Promise<Reading> {
  const [names, { queues: all, workers }] = await Promise.all([asked(env, queue), directoryObject(env).health()]);
  const queues = await readQueues(env, names);
  if (queue !== undefined && queues.length === 0) throw notFound('queue', queue);
  return { queues, total: all.total, workers, at: Math.max(0, ...queues.map(({ computed_at }) => computed_at)) };
}

/** Minimum interval between reads of the queues, per isolate, ms. */
const SCRAPE_EVERY_MS = 10_000;

const scrapedIn = perDeployment((_: Env): { last?: Reading } => ({}));

/** As {@link readMetrics}, of all queues; at most {@link SCRAPE_EVERY_MS} old. @param now epoch ms */
export async function scrape(env: Env, now: number): Promise<Reading> {
  const scraped = scrapedIn(env);
  if (scraped.last && isWithin(scraped.last.at, SCRAPE_EVERY_MS, now)) return scraped.last;
  scraped.last = { ...(await readMetrics(env)), at: now };
  return scraped.last;
}

/** Queues asked for their history at a time: an answer may be large. */
const WIDTH = 8;

/** The points of the queue, or of all queues that one request may ask. */
export async function readPoints(env: Env, queue: string | undefined, request: PointsRequest): Promise<Point[]> {
  const points = await inParallel(await asked(env, queue), (name) => queueObject(env, name).points(request), WIDTH);
  return points.flat();
}

/** What was counted in a queue, all types together. */
export const meterOf = ({ totals }: Pick<QueueActivity, 'totals'>): Meter => sum(totals.map(([, meter]) => meter));

export interface Cost {
  queue: string;
  /** Null: the queue's own writes, such as the removal of old jobs. */
  type: string | null;
  jobs: number;
  rows: number;
}

export const costsOf = ({ queue, totals }: QueueReading): Cost[] =>
  totals.map(([type, meter]) => ({
    queue,
    type: type === '' ? null : type,
    jobs: read(meter, 'enqueued'),
    rows: read(meter, 'rows'),
  }));
