/** Files as `POST …/import` takes them: right in their hashes, and in parts wrong in what their lines say. */
import { EXPORT_VERSION, PartWriter } from '../../src/export/file';
import type { Random } from './random';
import { hostile, QUEUES } from './values';

/** A file before it has its hashes. */
export interface FuzzFile {
  queue: string;
  lines: unknown[];
}

const hex = (random: Random, digits: number) =>
  Array.from({ length: digits }, () => random.below(16).toString(16)).join('');

/** Not many different ones, so that some are taken. */
const idFor = (random: Random) => `0190b6a5-0000-7000-8000-0000000000${hex(random, 2)}`;

const FAILURE = {
  ...{ attempt: 1, occurred_at: 2_000_000_000_000, duration_ms: 5, code: 'E', type: 'Error', message: 'm' },
  ...{ backoff_ms: 1000, reason: null },
};

function jobFor(random: Random): Record<string, unknown> {
  const type = random.pick(['fuzz.one', 'fuzz.two', 'work.echo']);
  const body: Record<string, unknown> = { type, args: [random.below(9)], meta: { n: 1 } };
  if (random.chance(0.2)) body.unique = { keys: random.pick([['type'], ['type', 'queue']]) };
  if (body.unique) body.fingerprint = hex(random, 1).repeat(64);
  if (random.chance(0.2)) body.rate_limit = { key: 'fuzz-key', concurrency: 1 };
  if (random.chance(0.2)) body.group = random.pick(['a', 'b']);
  if (random.chance(0.1)) body.retention = { completed: 'PT1H' };
  const job: Record<string, unknown> = {
    ...{ id: idFor(random), type, state: 'waiting', priority: random.pick([0, 0, 5]), attempt: 0, claims: 0 },
    ...{ created_at: 2_000_000_000_000, enqueued_at: 2_000_000_000_000, body },
  };
  const state = random.pick(['waiting', 'waiting', 'waiting', 'pending', 'completed', 'cancelled', 'dead']);
  Object.assign(job, { state });
  if (state === 'waiting' && random.chance(0.5)) job.due_at = 2_100_000_000_000 + random.below(3);
  if (state !== 'waiting' && state !== 'pending') job.ended_at = 2_000_000_000_500;
  if (state === 'completed') job.run = { started_at: 2_000_000_000_100, result: { ok: true } };
  if (random.chance(0.3)) Object.assign(job, { attempt: 1, claims: 1, history: { errors: [FAILURE] } });
  if (random.chance(0.2)) job.checkpoint = { sequence: 1, created_at: 2_000_000_000_000, content: { state: 1 } };
  return job;
}

function lineFor(random: Random): Record<string, unknown> {
  if (random.chance(0.1)) return { settings: { mode: 'active', config: { concurrency: 1 + random.below(5) } } };
  if (random.chance(0.1)) {
    const name = `fuzz-file-${random.below(4)}`;
    return { schedule: { name, expression: '0 3 1 1 *', job_template: { type: 'fuzz.one', args: [] } } };
  }
  return { job: jobFor(random) };
}

/** Puts what nobody should send in the place of something. */
function spoil(random: Random, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || random.chance(0.2)) return hostile(random);
  const names = Object.keys(value);
  const name = names.length > 0 && random.chance(0.9) ? random.pick(names) : 'fuzz';
  const inside = (value as Record<string, unknown>)[name];
  return Object.assign(Array.isArray(value) ? [...value] : { ...value }, { [name]: spoil(random, inside) });
}

/** @param wild how often a line says something that nobody should send */
export function fileFor(random: Random, wild: number): FuzzFile {
  const lines = Array.from({ length: 1 + random.below(6) }, () => {
    const line = lineFor(random);
    return random.chance(wild) ? spoil(random, line) : line;
  });
  return { queue: random.pick(QUEUES), lines };
}

/** Its text, with the hashes that belong to it. */
export async function textOfFile({ queue, lines }: FuzzFile): Promise<string> {
  const writer = new PartWriter({ tocsin: 'export', version: EXPORT_VERSION, queue, ended: true });
  const jobs: Record<string, number> = { waiting: 0 };
  let text = writer.begin();
  for (const line of lines) {
    const written = JSON.stringify(line);
    if (written.startsWith('{"job":')) jobs.waiting = (jobs.waiting ?? 0) + 1;
    text += await writer.add(written);
  }
  return text + (await writer.end(jobs, {}));
}
