/**
 * Validates jobs in the Worker by the schemas of their types. Isolates keep schemas without checking whether they are
 * current: every queue knows the stamp of the last change and refuses jobs validated by earlier ones, and only then
 * the directory is asked. So a change holds from its arrival at the queue, and deployments without schemas never ask.
 */
import type { Env } from '../config';
import { perDeployment } from '../durable/memory';
import { ApiError, atIndex } from '../job/errors';
import type { NewJob, SchemaStamp } from '../job/record';
import { directoryObject, queueObject } from '../rpc/stubs';
import { type CronDefinition, jobOf } from '../schedules/definition';
import { haveSchemasChanged, schemaValidation, warningOf } from '../schemas/misfit';
import { Registry } from '../schemas/registry';
import { Work } from '../schemas/work';

/** The schemas that this isolate knows, for each deployment. */
const knownIn = perDeployment((_: Env) => ({ registry: new Registry(undefined, []) }));

/** How often jobs are validated again because the schemas have changed meanwhile. */
const TRIES = 4;

interface Sent {
  job: NewJob;
}

/** The entries with the verdict of the schemas known here. */
function validated<T extends Sent>(env: Env, entries: readonly T[]): readonly T[] {
  const { registry } = knownIn(env);
  const { stamp } = registry;
  if (stamp === undefined) return entries;
  const work = new Work();
  return entries.map((entry) => ({
    ...entry,
    job: { ...entry.job, validated: validation(registry, stamp, entry.job, work) },
  }));
}

function validation(
  registry: Registry,
  stamp: SchemaStamp,
  { type, body }: NewJob,
  work: Work,
): NonNullable<NewJob['validated']> {
  const misfits = registry.misfits(type, body, work);
  return { stamp, ...(misfits.length > 0 && { misfits }) };
}

/** Sends validated jobs, again if the queue reports other schemas. @param send throws the queue's refusal */
export async function underSchemas<T extends Sent, R>(
  env: Env,
  entries: readonly T[],
  send: (entries: readonly T[]) => Promise<R>,
): Promise<R> {
  for (let tries = 1; ; tries++) {
    try {
      return await send(validated(env, entries));
    } catch (error) {
      if (!(error instanceof ApiError) || !haveSchemasChanged(error.data) || tries === TRIES) throw error;
      await refresh(env);
    }
  }
}

async function refresh(env: Env): Promise<Registry> {
  const known = knownIn(env);
  const changed = await directoryObject(env).schemas(known.registry.stamp);
  if (changed) known.registry = new Registry(changed.stamp, changed.schemas);
  return known.registry;
}

/** Validates jobs kept for later. @returns warnings for their author @throws {ApiError} 400 with `details.index` */
export async function validateKept(env: Env, entries: readonly (Sent & { queue: string })[]): Promise<string[]> {
  const registry = await refresh(env);
  const work = new Work();
  const warnings: string[] = [];
  const modes = new Map<string, string>();
  for (const [index, { queue, job }] of registry.stamp === undefined ? [] : entries.entries()) {
    const misfits = registry.misfits(job.type, job.body, work);
    if (misfits.length === 0) continue;
    const mode = modes.get(queue) ?? (await modeOf(env, queue));
    modes.set(queue, mode);
    if (mode === 'strict') throw atIndex(schemaValidation(job.type, misfits), index);
    if (mode === 'warn') warnings.push(warningOf(job.type, misfits));
  }
  return warnings;
}

async function modeOf(env: Env, queue: string): Promise<string> {
  const settings = await queueObject(env, queue).settings();
  return (settings.ok && settings.value.effective.schemas) || 'warn';
}

/** {@link validateKept} for the jobs of schedules. @param now epoch ms */
export const validateCrons = (env: Env, definitions: readonly CronDefinition[], now: number): Promise<string[]> =>
  validateKept(
    env,
    definitions.map((definition) => ({ queue: definition.queue, job: jobOf(definition, { now }) })),
  );
