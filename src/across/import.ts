/** Imports parts of a file: ids that do not name the queue are noted, and global fingerprints reserved. */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import type { StoredJob } from '../export/stored-job';
import { defined, isObject, readName, readObject } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { JobBody } from '../job/record';
import { formatInstant } from '../job/time';
import { scopeOf } from '../job/unique/policy';
import type { ImportRequest, PartsImported } from '../rpc/export';
import { queueObject } from '../rpc/stubs';
import { type CronContext, type CronDefinition, parseCron } from '../schedules/definition';
import { reserveIds } from './batch';
import { findCron, saveCron } from './crons';
import { refuseUnknownOptionsIn } from './known-options';
import { Reservations } from './reservation';

export interface PartsTaken extends PartsImported {
  /** Jobs whose ids belong to jobs of other queues. */
  elsewhere: number;
}

/**
 * Imports parts of a file. @param dryRun only returns what would happen, as far as this queue knows
 * @throws {ApiError} as the queue answers; 503 while others keep a fingerprint; then nothing was written
 */
export async function importInto(
  env: Env,
  queue: string,
  request: ImportRequest,
  dryRun: boolean,
): Promise<PartsTaken> {
  for (const { jobs } of request.parts) {
    for (const { body } of jobs) await refuseUnknownOptionsIn(env, queue, body);
  }
  if (dryRun) return { ...unwrap(await queueObject(env, queue).considerImport(request)), elsewhere: 0 };
  const jobs = request.parts.flatMap((part) => part.jobs.map(({ id }) => ({ queue, job: { id } })));
  const taken = await reserveIds(env, jobs);
  const isFree = ({ id }: StoredJob) => !taken.has(id);
  const parts = request.parts.map((part) => ({ ...part, jobs: part.jobs.filter(isFree) }));
  const imported = await underTicket(env, queue, { ...request, parts });
  return { ...imported, elsewhere: taken.size };
}

async function underTicket(env: Env, queue: string, request: ImportRequest): Promise<PartsImported> {
  const jobs = request.parts.flatMap((part) => part.jobs);
  const fingerprints = [...new Set(jobs.flatMap(({ body }) => globalFingerprintIn(body) ?? []))];
  const object = queueObject(env, queue);
  if (fingerprints.length === 0) return unwrap(await object.importParts(request));
  const reservations = new Reservations(env, uuidv7(), queue);
  try {
    await reservations.reserve(fingerprints.map((fingerprint) => ({ fingerprint, queue })));
    return await reservations.use(async () => unwrap(await object.importParts(request, reservations.ticket)));
  } finally {
    await reservations.release();
  }
}

/** The fingerprint of a job, if jobs of other queues count, too. */
function globalFingerprintIn(text: string): string | undefined {
  // Most jobs are not unique, and parsing is not free.
  if (!text.includes('"fingerprint":')) return undefined;
  const { fingerprint, unique } = JSON.parse(text) as JobBody;
  return scopeOf(unique) === 'global' ? fingerprint : undefined;
}

/** A schedule as a file has it: a request, with its group. */
export function exportedCron(definition: CronDefinition): Record<string, unknown> {
  const { fingerprint: _, queue: __, template, start_at, end_at, ...rest } = definition;
  return defined({
    ...rest,
    start_at: start_at === undefined ? undefined : formatInstant(start_at),
    end_at: end_at === undefined ? undefined : formatInstant(end_at),
    job_template: template,
  });
}

/** Reads a schedule of a file; its jobs go to this queue. @throws {ApiError} as `parseCron` */
export async function readCron(
  value: unknown,
  queue: string,
  context: Pick<CronContext, 'now'> & { path: string },
): Promise<CronDefinition> {
  const { group, ...input } = readObject(value, context.path);
  const named = group === undefined ? undefined : readName(255)(group, `${context.path}.group`);
  const read = (entry: Record<string, unknown>) => parseCron(entry, { ...context, group: named });
  const definition = await read(input);
  if (definition.queue === queue) return definition;
  const { template } = definition;
  const options = { ...(isObject(template.options) && template.options), queue };
  return read({ ...input, job_template: { ...template, options } });
}

/** Saves a schedule unless there is one of its name. @returns whether it is there now as in the file, and is new */
export async function importCron(
  env: Env,
  definition: CronDefinition,
  dryRun: boolean,
): Promise<'imported' | 'known' | 'other'> {
  const before = await findCron(env, definition.name);
  if (before) return JSON.stringify(before.definition) === JSON.stringify(definition) ? 'known' : 'other';
  if (!dryRun) await saveCron(env, definition, undefined);
  return 'imported';
}
