import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJob } from '../../../src/job/envelope/parse';
import { ApiError, type ErrorData } from '../../../src/job/errors';
import type { JobBody } from '../../../src/job/record';
import { UnknownMembers } from '../../../src/job/unknown-members';

const NOW = Date.UTC(2026, 0, 1);
const ID = '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f';
const minimal = { type: 'email.send', args: [] };

const parse = (input: Record<string, unknown>, path?: string) =>
  parseJob(input, path === undefined ? { now: NOW } : { now: NOW, path });

function refusal(input: Record<string, unknown>, path?: string): ErrorData {
  try {
    parse(input, path);
  } catch (error) {
    if (error instanceof ApiError) return error.data;
    throw error;
  }
  throw new Error('The job was accepted.');
}

describe('a job that is accepted', () => {
  it('gets the default queue and priority, empty meta and nothing else', () => {
    const { queue, job, body } = parse(minimal);
    expect(queue).toBe('default');
    expect(job).toEqual({ type: 'email.send', priority: 0, body: JSON.stringify(body) });
    expect(body).toStrictEqual({ type: 'email.send', args: [], meta: {} });
  });

  it('takes a member of options before the same one at the top level', () => {
    const { queue, job } = parse({ ...minimal, queue: 'low', priority: 1, options: { queue: 'mail', priority: 5 } });
    expect([queue, job.priority]).toEqual(['mail', 5]);
  });

  it('takes null for absent, in options and at the top level', () => {
    const { queue, job, body } = parse({
      ...minimal,
      id: null,
      meta: null,
      queue: 'low',
      options: { queue: null, retry: null, tags: null, timeout_ms: null, unique: null },
    });
    expect(queue).toBe('low');
    expect(job.id).toBeUndefined();
    expect(body).toStrictEqual({ type: 'email.send', args: [], meta: {} });
  });

  it('is delayed by a time or by a distance from now', () => {
    expect(parse({ ...minimal, options: { delay_until: '+PT10S' } }).job.scheduledAt).toBe(NOW + 10_000);
    expect(parse({ ...minimal, scheduled_at: '2026-01-01T02:00:00+01:00' }).job.scheduledAt).toBe(NOW + 3_600_000);
    expect(parse({ ...minimal, scheduled_at: '5m' }).body.scheduled_at).toBe(NOW + 300_000);
  });

  it('starts at once when its time has passed', () => {
    const { job, body } = parse({ ...minimal, options: { delay_until: '2020-01-01T00:00:00Z' } });
    expect(job).not.toHaveProperty('scheduledAt');
    expect(body).not.toHaveProperty('scheduled_at');
  });

  it('may have expired already', () => {
    const unknown = new UnknownMembers();
    const options = { expires_at: '2020-01-01T00:00:00Z' };
    expect(parseJob({ ...minimal, options }, { now: NOW, path: 'jobs[0]', unknown }).job.expiresAt).toBeLessThan(NOW);
    expect(unknown.warnings).toEqual([
      'jobs[0].options.expires_at is in the past: the job is discarded without a run.',
    ]);
  });

  it('may have become too late since it was accepted', () => {
    const late = { ...minimal, options: { delay_until: '+PT1H', expires_at: new Date(NOW).toISOString() } };
    expect(parseJob(late, { now: NOW, accepted: true }).job).toMatchObject({ expiresAt: NOW });
  });

  it('keeps unknown members and drops those the server manages', () => {
    const { body } = parse({ ...minimal, x_trace: { a: 1 }, state: 'completed', attempt: 7, created_at: 'x' });
    expect(body.extra).toEqual({ x_trace: { a: 1 } });
  });

  it('treats __proto__ and constructor as ordinary names', () => {
    const input = JSON.parse(
      '{"type":"a","args":[{"__proto__":{"x":1}}],"meta":{"constructor":1,"__proto__":2},"__proto__":{"y":3}}',
    ) as Record<string, unknown>;
    const stored = JSON.parse(parse(input).job.body) as JobBody;
    expect(JSON.stringify(stored.args)).toBe('[{"__proto__":{"x":1}}]');
    expect(JSON.stringify(stored.meta)).toBe('{"constructor":1,"__proto__":2}');
    expect(JSON.stringify(stored.extra)).toBe('{"__proto__":{"y":3}}');
    expect(({} as Record<string, unknown>).y).toBeUndefined();
  });

  it('keeps U+0000 in args and meta', () => {
    const { body } = parse({ type: 'a', args: ['\0'], meta: { k: '\0' } });
    expect([body.args, body.meta]).toEqual([['\0'], { k: '\0' }]);
  });

  it('has one retry layer whether max_attempts stands in retry or beside it', () => {
    const beside = parse({ ...minimal, options: { max_attempts: 5, retry: { jitter: false } } });
    expect(beside.job.retry).toEqual({ jitter: false, max_attempts: 5 });
    expect(beside.body).toMatchObject({ retry: { jitter: false }, max_attempts: 5 });
    expect(parse({ ...minimal, retry: { max_attempts: 0 } }).job.retry).toEqual({ max_attempts: 0 });
  });

  it('carries its body as the text that was read', () => {
    const { job, body } = parse({ ...minimal, options: { tags: ['a'], metadata: { m: 1 }, version: 1 }, version: 2 });
    expect(JSON.parse(job.body)).toEqual(body);
    expect(body).toMatchObject({ tags: ['a'], metadata: { m: 1 }, version: 2 });
  });
});

/** Input, status, code, field. */
const REFUSED: [string, Record<string, unknown>, number, string, string][] = [
  ['no type', { args: [] }, 400, 'invalid_request', 'type'],
  ['a null type', { type: null, args: [] }, 400, 'invalid_request', 'type'],
  ['an empty type', { type: '', args: [] }, 400, 'invalid_request', 'type'],
  ['an upper-case type', { type: 'Email', args: [] }, 400, 'invalid_request', 'type'],
  ['a type with U+0000', { type: 'a\0', args: [] }, 400, 'invalid_request', 'type'],
  ['a type with a final line feed', { type: 'a\n', args: [] }, 400, 'invalid_request', 'type'],
  ['a type of 256 letters', { type: 'a'.repeat(256), args: [] }, 400, 'invalid_request', 'type'],
  ['no args', { type: 'a' }, 400, 'invalid_request', 'args'],
  ['null args', { type: 'a', args: null }, 400, 'invalid_request', 'args'],
  ['object args', { type: 'a', args: {} }, 400, 'invalid_request', 'args'],
  ['an id of version 4', { ...minimal, id: '550e8400-e29b-41d4-a716-446655440000' }, 400, 'invalid_request', 'id'],
  ['an id in upper case', { ...minimal, id: ID.toUpperCase() }, 400, 'invalid_request', 'id'],
  ['an empty id', { ...minimal, id: '' }, 400, 'invalid_request', 'id'],
  ['a numeric id', { ...minimal, id: 7 }, 400, 'invalid_request', 'id'],
  ['options that are a list', { ...minimal, options: [] }, 400, 'invalid_request', 'options'],
  ['a queue with an underscore', { ...minimal, options: { queue: 'a_b' } }, 400, 'invalid_request', 'options.queue'],
  ['an empty queue', { ...minimal, queue: '' }, 400, 'invalid_request', 'queue'],
  ['a queue of 129 letters', { ...minimal, queue: 'a'.repeat(129) }, 400, 'invalid_request', 'queue'],
  ['a priority of 101', { ...minimal, options: { priority: 101 } }, 400, 'invalid_request', 'options.priority'],
  ['a priority of 1.5', { ...minimal, priority: 1.5 }, 400, 'invalid_request', 'priority'],
  ['a priority in a string', { ...minimal, priority: '1' }, 400, 'invalid_request', 'priority'],
  ['a timeout of 0', { ...minimal, options: { timeout_ms: 0 } }, 400, 'invalid_request', 'options.timeout_ms'],
  ['a timeout beyond 36,500 days', { ...minimal, timeout_ms: 3_153_600_000_001 }, 400, 'invalid_request', 'timeout_ms'],
  [
    'a visibility timeout that is no number',
    { ...minimal, visibility_timeout_ms: 'PT1S' },
    400,
    'invalid_request',
    'visibility_timeout_ms',
  ],
  [
    'a date alone',
    { ...minimal, options: { delay_until: '2030-01-01' } },
    400,
    'invalid_request',
    'options.delay_until',
  ],
  ['a date that is none', { ...minimal, scheduled_at: '2030-02-30T00:00:00Z' }, 400, 'invalid_request', 'scheduled_at'],
  ['a time as a number', { ...minimal, expires_at: 1 }, 400, 'invalid_request', 'expires_at'],
  ['a tag that is no string', { ...minimal, options: { tags: ['a', 1] } }, 400, 'invalid_request', 'options.tags[1]'],
  ['51 tags', { ...minimal, tags: Array(51).fill('a') }, 400, 'invalid_request', 'tags'],
  ['a tag with U+0000', { ...minimal, tags: ['a\0'] }, 400, 'invalid_request', 'tags[0]'],
  ['pending that is no boolean', { ...minimal, options: { pending: 1 } }, 400, 'invalid_request', 'options.pending'],
  ['meta that is a list', { ...minimal, meta: [] }, 400, 'invalid_request', 'meta'],
  ['meta above 64 KiB', { ...minimal, meta: { a: 'x'.repeat(65_536) } }, 413, 'payload_too_large', 'meta'],
  [
    'meta above 64 KiB in UTF-8 only',
    { ...minimal, meta: { a: 'é'.repeat(33_000) } },
    413,
    'payload_too_large',
    'meta',
  ],
  ['numbers that grow beyond 1 MiB', { type: 'a', args: Array(60_000).fill(1e20) }, 413, 'payload_too_large', 'body'],
  ['another major version', { ...minimal, specversion: '2.0' }, 422, 'unsupported', 'specversion'],
  ['a version that is none', { ...minimal, specversion: 'one' }, 400, 'invalid_request', 'specversion'],
  ['a rate limit that is none', { ...minimal, rate_limit: 5 }, 400, 'invalid_request', 'rate_limit'],
  [
    'max_attempts twice',
    { ...minimal, options: { max_attempts: 2, retry: { max_attempts: 2 } } },
    422,
    'invalid_request',
    'options.max_attempts',
  ],
  [
    'an expiry before the start',
    { ...minimal, options: { delay_until: '+PT2H', expires_at: '+PT1H' } },
    422,
    'invalid_request',
    'options.expires_at',
  ],
  [
    'an expiry at the start',
    { ...minimal, scheduled_at: '+PT1H', expires_at: '+PT1H' },
    422,
    'invalid_request',
    'expires_at',
  ],
  ['negative max_attempts', { ...minimal, max_attempts: -1 }, 422, 'invalid_request', 'max_attempts'],
  [
    'a retry policy out of range',
    { ...minimal, retry: { max_attempts: -1 } },
    422,
    'invalid_request',
    'retry.max_attempts',
  ],
];

describe('a job that is refused', () => {
  it.each(REFUSED)('with %s names the field', (_, input, status, code, field) => {
    const error = refusal(input);
    expect({ status: error.status, code: error.code, field: error.details?.field }).toEqual({ status, code, field });
    expect(error.retryable).toBe(false);
  });

  it('inside a batch names the field with its place', () => {
    expect(refusal({ ...minimal, options: { priority: 999 } }, 'jobs[3]').details?.field).toBe(
      'jobs[3].options.priority',
    );
  });
});

describe('whatever is sent', () => {
  const names = fc.constantFrom(
    ...['type', 'args', 'id', 'options', 'meta', 'retry', 'queue', 'priority', 'tags', 'scheduled_at', 'expires_at'],
    ...['max_attempts', 'timeout_ms', 'specversion', 'version', 'schema', 'pending', 'metadata', '__proto__', 'x_1'],
  );
  const member = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('a.b', 'default', '+PT1S', '1.0', ID, null, 0, 5, -1, true, '\ud800'),
    fc.dictionary(names, fc.jsonValue()),
  );

  it('is a job or an ApiError, never another exception', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(names, member)), fc.boolean(), (entries, plausible) => {
        const input = { ...(plausible && minimal), ...Object.fromEntries(entries) };
        try {
          const { job, body } = parse(input);
          expect(JSON.parse(job.body)).toEqual(JSON.parse(JSON.stringify(body)));
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
