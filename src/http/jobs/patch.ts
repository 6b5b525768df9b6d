/** Clients' changes of a waiting job: only named members change, `null` restores the default. */
import { readObject } from '../../job/envelope/fields';
import { readChange } from '../../job/envelope/option-readers';
import { JOB_MEMBERS } from '../../job/envelope/parse';
import { invalidPolicy, invalidRequest } from '../../job/errors';
import { optionsThat } from '../../job/options';
import type { JobView } from '../../job/record';
import type { PatchRequest } from '../../rpc/operations';
import { type AppContext, mayPurge } from '../context';
import { type JsonObject, readBody } from '../request/body';
import { callJob } from '../request/path';
import { refuseRedacted } from '../request/redacted';

const CHANGEABLE = optionsThat('patch');

const isChangeable = (name: string): name is (typeof CHANGEABLE)[number] => CHANGEABLE.some((known) => known === name);

/** Reads a change. @throws {ApiError} 400 naming the member, 422 for an invalid retry policy */
export function readPatch(body: JsonObject, now: number): Omit<PatchRequest, 'id'> {
  const { options, ...top } = body;
  const request: Record<string, unknown> = {};
  const named = new Map<string, string>();
  const given = [
    ...Object.entries(top).map(([name, value]) => [name, value, name] as const),
    ...Object.entries(readObject(options ?? {}, 'options')).map(
      ([name, value]) => [name, value, `options.${name}`] as const,
    ),
  ];
  for (const [name, value, path] of given) {
    if (!isChangeable(name)) throw unchangeable(name, path);
    const key = name === 'delay_until' ? 'scheduled_at' : name;
    const other = named.get(key);
    if (other !== undefined) throw invalidRequest(path, `${path} repeats ${other}: use one of the two.`);
    named.set(key, path);
    request[key] = value === null ? null : readChange(name, value, path, { now });
  }
  if (named.size === 0) {
    throw invalidRequest('body', `The body contains nothing to change; send ${CHANGEABLE.join(', ')}.`);
  }
  const policy = request.retry as Record<string, unknown> | null | undefined;
  if (typeof request.max_attempts === 'number' && typeof policy?.max_attempts === 'number') {
    throw invalidPolicy(named.get('max_attempts') ?? 'max_attempts', 'cannot be combined with retry.max_attempts');
  }
  return request;
}

function unchangeable(name: string, path: string) {
  const why = JOB_MEMBERS.has(name) ? 'cannot be changed' : 'is not known';
  return invalidRequest(path, `${path} ${why}; send ${CHANGEABLE.join(', ')}.`);
}

/** Changes the job that the path names. @throws {ApiError} 400, 404, 409, 422 */
export async function patchJob(c: AppContext): Promise<JobView> {
  const body = await readBody(c);
  refuseRedacted(c, body, 'tags');
  const change = readPatch(body, Date.now());
  return callJob(c, (queue, id) => queue.patch({ ...change, id, mayPurge: mayPurge(c) }));
}
