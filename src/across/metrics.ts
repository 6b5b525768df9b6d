/** What has happened in several queues, and how they get on, in one. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { notFound } from '../job/errors';
import { type Meter, read, sum } from '../job/metrics/meter';
import type { Point } from '../job/metrics/series';
import type { WorkerSummary } from '../rpc/directory';
import type { PointsRequest, QueueActivity } from '../rpc/metrics';
import type { QueueStats } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import { nextQueues } from './queues';
import { activityOfEach } from './statistics';

export type QueueReading = QueueStats & QueueActivity;

/** What queues say. */
export interface Reading {
  queues: QueueReading[];
  /** How many queues there are. */
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

/** Asks the queues, and how many workers there are. @throws {ApiError} 404 when there is no queue of that name */
export async function readMetrics(env: Env, queue?: string): Promise<Reading> {
  const [names, { queues: all, workers }] = await Promise.all([asked(env, queue), directoryObject(env).health()]);
  const readings = await activityOfEach(
    env,
    names.map((name) => ({ name })),
  );
  const queues = readings.filter(({ exists }) => exists);
  if (queue !== undefined && queues.length === 0) throw notFound('queue', queue);
  return { queues, total: all.total, workers, at: Math.max(0, ...queues.map(({ computed_at }) => computed_at)) };
}

/** However many scrape, the queues are asked so often by an isolate, ms. */
const SCRAPE_EVERY_MS = 10_000;

const readings = new WeakMap<Env, Reading>();

/** A reset may be followed by anything. */
export function forgetReading(env: Env): void {
  readings.delete(env);
}

/** As {@link readMetrics}, of all queues; at most {@link SCRAPE_EVERY_MS} old. @param now epoch ms */
export async function scrape(env: Env, now: number): Promise<Reading> {
  const last = readings.get(env);
  if (last && now >= last.at && now - last.at < SCRAPE_EVERY_MS) return last;
  const reading = { ...(await readMetrics(env)), at: now };
  readings.set(env, reading);
  return reading;
}

/** Queues asked for their history at a time: an answer may be large. */
const WIDTH = 8;

/** The points of the queue, or of all that one request may ask. */
export async function readPoints(env: Env, queue: string | undefined, request: PointsRequest): Promise<Point[]> {
  const points = await inParallel(await asked(env, queue), (name) => queueObject(env, name).points(request), WIDTH);
  return points.flat();
}

/** What was counted in a queue, all types together. */
export const meterOf = ({ totals }: Pick<QueueActivity, 'totals'>): Meter => sum(totals.map(([, meter]) => meter));

/** What a queue, or one of its types, has cost. */
export interface Cost {
  queue: string;
  /** Null: what the queue wrote for itself, such as the removal of old jobs. */
  type: string | null;
  jobs: number;
  rows: number;
}

export function costsOf({ queue, totals }: QueueReading): Cost[] {
  return totals.map(([type, meter]) => ({
    queue,
    type: type === '' ? null : type,
    jobs: read(meter, 'enqueued'),
    rows: read(meter, 'rows'),
  }));
}
