/** The requests that a queue sends and the answers that it expects (push delivery): parsing and writing, no running. */
import type { Progress } from '../job/attempt/notes';
import { textOf } from '../job/own';
import { safely } from '../job/thrown';
import type { RunRequest } from '../job/wire';
import { named } from '../producer/names';
import type { Failure } from './failure';
import type { LogEntry } from './journal';
import type { StepRecord } from './step-rules';
import type { HandlerContext, Job } from './types';

/** A job to run. */
export interface HandlerDelivery extends Pick<HandlerContext, 'deliveryId' | 'job' | 'attempt'> {
  kind: 'job';
  workerId: string | undefined;
}

/** A delivery without a job: answered as failed, while the others run. */
export interface BrokenDelivery {
  kind: 'broken';
  deliveryId: string | undefined;
  problem: string;
}

export type DeliveryRequest =
  | { kind: 'batch'; deliveries: (HandlerDelivery | BrokenDelivery)[] }
  | { kind: 'single'; delivery: HandlerDelivery }
  | { kind: 'malformed'; problem: string };

export type { Progress };

/** How one run ended. `result` is JSON text. */
export type Outcome =
  | { status: 'completed'; result?: string }
  | { status: 'failed'; error: Failure }
  /** It continues later, no attempt used: after `in` ms, at `until`, at the signal, or when the jobs have ended. */
  | { status: 'snoozed'; in?: number; until?: number; signal?: string; runs?: readonly RunRequest[] }
  /** It needs a call that stays open, and has done nothing. */
  | { status: 'again' };

/** What the run had to say and has not said yet: sent together with its outcome. */
export interface Remarks {
  log?: LogEntry[];
  progress?: Progress;
  checkpoint?: unknown;
  steps?: Record<string, StepRecord>;
  streams?: unknown[];
  enqueue?: Record<string, unknown>[];
}

export type DeliveryOutcome = Outcome & Remarks;

/**
 * Reads the body of a delivery: `{deliveries: […]}`, `{job, delivery_id, worker_id}`, or the bare job, whose delivery
 * id and attempt are in the headers. A batch entry without an id cannot be answered; it is left out, so the queue
 * treats it as undelivered. Of entries with the same id the first one counts.
 */
export function parseDeliveries(body: string, headers: Headers): DeliveryRequest {
  const parsed = parseJson(body);
  if (!isObject(parsed)) return { kind: 'malformed', problem: 'the body is not a JSON object' };
  if ('deliveries' in parsed) {
    if (!Array.isArray(parsed.deliveries)) return { kind: 'malformed', problem: 'deliveries must be an array' };
    return { kind: 'batch', deliveries: batch(parsed.deliveries, textOf(parsed.worker_id)) };
  }
  const enveloped = 'job' in parsed;
  const deliveryId =
    (enveloped ? textOf(parsed.delivery_id) : undefined) ?? headers.get('X-OJS-Delivery-ID') ?? undefined;
  const workerId = enveloped ? textOf(parsed.worker_id) : undefined;
  const delivery = read(enveloped ? parsed.job : parsed, deliveryId, workerId, headers.get('X-OJS-Attempt'));
  return delivery.kind === 'job' ? { kind: 'single', delivery } : { kind: 'malformed', problem: delivery.problem };
}

/** The answer to one delivery as JSON text; `deliveryId` only inside a batch. */
export function writeAnswer(answer: DeliveryOutcome, deliveryId?: string): string {
  if (answer.status === 'completed' && isBare(answer)) {
    const named = deliveryId === undefined ? '' : `"delivery_id":${JSON.stringify(deliveryId)},`;
    return `{${named}"status":"completed"}`;
  }
  const id = deliveryId === undefined ? {} : { delivery_id: deliveryId };
  if (answer.status !== 'completed' || answer.result === undefined) return JSON.stringify({ ...id, ...answer });
  const { result, ...rest } = answer;
  // Results are text already. Writing them once avoids a second copy of a large batch in memory.
  return `${JSON.stringify({ ...id, ...rest }).slice(0, -1)},"result":${result}}`;
}

function isBare(answer: DeliveryOutcome): boolean {
  for (const name in answer) if (name !== 'status') return false;
  return true;
}

export function stepsOf(job: Job): Record<string, StepRecord> {
  const steps: unknown = Reflect.get(job, 'steps');
  // The queue wrote them.
  return isObject(steps) ? (steps as Record<string, StepRecord>) : {};
}

function batch(entries: unknown[], workerId: string | undefined): (HandlerDelivery | BrokenDelivery)[] {
  const seen = new Set<string>();
  const deliveries: (HandlerDelivery | BrokenDelivery)[] = [];
  for (const entry of entries) {
    if (!isObject(entry)) continue;
    const id = textOf(entry.delivery_id);
    if (id === undefined) continue;
    seen.add(id);
    if (seen.size > deliveries.length) deliveries.push(read(entry.job, id, workerId, null));
  }
  return deliveries;
}

function read(
  value: unknown,
  deliveryId: string | undefined,
  workerId: string | undefined,
  attemptHeader: string | null,
): HandlerDelivery | BrokenDelivery {
  const broken = (problem: string): BrokenDelivery => ({ kind: 'broken', deliveryId, problem });
  if (!isObject(value)) return broken('job must be an object');
  if (typeof value.type !== 'string' || value.type === '') return broken('job.type must be a string');
  if (value.args !== undefined && !Array.isArray(value.args)) return broken('job.args must be an array');
  const attempt = [value.attempt, Number(attemptHeader)].find((n) => Number.isInteger(n) && Number(n) >= 1);
  // The queue defines the other members; only those that this library reads are checked.
  const job = named(value) as Record<string, unknown>;
  job.args = value.args ?? [];
  job.meta = isObject(value.meta) ? value.meta : {};
  return { kind: 'job', deliveryId, workerId, job: job as unknown as Job, attempt: Number(attempt ?? 1) };
}

/** The value, or undefined where the text is not JSON. */
export const parseJson = (text: string): unknown => safely(() => JSON.parse(text), undefined);

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
