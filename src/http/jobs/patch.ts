/** Changes of a waiting job as clients write them: only what is named changes, `null` goes back to the default. */
import { type Reader, readInteger, readList, readMilliseconds, readName, readObject } from '../../job/envelope/fields';
import { invalidPolicy, invalidRequest } from '../../job/errors';
import type { JobView } from '../../job/record';
import { readRetentionChange } from '../../job/retention';
import { checkRetryLayer } from '../../job/retry/validate';
import { parseInstant } from '../../job/time';
import type { PatchRequest } from '../../rpc/operations';
import { type AppContext, mayPurge } from '../context';
import { type JsonObject, readBody } from '../request/body';
import { callJob } from '../request/path';
import { refuseRedacted } from '../request/redacted';

const MAX_ATTEMPTS = 2_147_483_647;

const readMaxAttempts: Reader<number> = (value, field) => {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_ATTEMPTS) return value as number;
  throw invalidPolicy(field, `must be an integer from 0 to ${MAX_ATTEMPTS}`);
};

/** Name on the wire → name in the request, and reader. */
function changeable(now: number): Record<string, { key: keyof PatchRequest; read: Reader<unknown> }> {
  const readMoment: Reader<number> = (value, field) => {
    const moment = parseInstant(value, now);
    if (moment !== undefined) return moment;
    throw invalidRequest(field, `${field} must be an RFC 3339 time with a zone, or a duration from now like "+PT10S".`);
  };
  return {
    priority: { key: 'priority', read: readInteger(-100, 100) },
    scheduled_at: { key: 'scheduled_at', read: readMoment },
    delay_until: { key: 'scheduled_at', read: readMoment },
    expires_at: { key: 'expires_at', read: readMoment },
    timeout_ms: { key: 'timeout_ms', read: readMilliseconds },
    retry: { key: 'retry', read: (value, field) => checkRetryLayer(value, field) },
    max_attempts: { key: 'max_attempts', read: readMaxAttempts },
    tags: { key: 'tags', read: readList(50, readName(128)) },
    retention: { key: 'retention', read: readRetentionChange },
  };
}

/** What is known of a job and can never change. */
const FIXED = new Set([
  'id',
  'type',
  'queue',
  'args',
  'meta',
  'unique',
  'specversion',
  'state',
  'attempt',
  'created_at',
]);

/** Reads a change. @throws {ApiError} 400 naming the member, 422 for a retry policy that is none */
export function readPatch(body: JsonObject, now: number): Omit<PatchRequest, 'id'> {
  const members = changeable(now);
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
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    if (!member) throw unchangeable(name, path);
    const other = named.get(member.key);
    if (other !== undefined) throw invalidRequest(path, `${path} is ${other} once more: write one of the two.`);
    named.set(member.key, path);
    request[member.key] = value === null ? null : member.read(value, path);
  }
  if (named.size === 0) {
    throw invalidRequest('body', `The body names nothing to change; send ${Object.keys(members).join(', ')}.`);
  }
  const policy = request.retry as Record<string, unknown> | null | undefined;
  if (typeof request.max_attempts === 'number' && typeof policy?.max_attempts === 'number') {
    throw invalidPolicy(named.get('max_attempts') ?? 'max_attempts', 'cannot stand beside retry.max_attempts');
  }
  return request;
}

function unchangeable(name: string, path: string) {
  const why = FIXED.has(name) ? 'cannot be changed' : 'is not known';
  return invalidRequest(path, `${path} ${why}; send ${Object.keys(changeable(0)).join(', ')}.`);
}

/** Changes the job that the path names. @throws {ApiError} 400, 404, 409, 422 */
export async function patchJob(c: AppContext): Promise<JobView> {
  const body = await readBody(c);
  refuseRedacted(c, body, 'tags');
  const change = readPatch(body, Date.now());
  return callJob(c, (queue, id) => queue.patch({ ...change, id, mayPurge: mayPurge(c) }));
}
