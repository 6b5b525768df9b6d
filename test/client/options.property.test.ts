/**
 * Every option of the table goes to a job and comes back: in the answer to its enqueue, alone, gathered and over a socket; in what
 * the server shows later, in a clone, and after a change. An option that is added to the table is in here by itself.
 */
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Duration, JobOptions, JobPatch, RetryPolicy, TocsinClient } from '../../src/client';
import { describe as accepted, type Reader } from '../../src/job/envelope/fields';
import { OPTION_READERS } from '../../src/job/envelope/option-readers';
import { factsOf, OPTION_NAMES, type OptionName, optionsThat } from '../../src/job/options';
import { camelName } from '../../src/producer/names';
import { CLIENT_OPTIONS } from '../../src/producer/options';
import { until } from '../support/clock';
import { histories } from '../support/long';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { liveClient } from './live-client';
import { watched } from './watched';

const FAR = Date.UTC(2100, 0, 1);
const duration = fc.oneof(
  fc.integer({ min: 1, max: 86_400_000 }),
  fc.constantFrom('PT90S', '1h', '500ms', '12.5s', '7d'),
) as fc.Arbitrary<never>;
const momentIn = (year: number) => {
  const from = Date.UTC(year, 0, 1);
  return fc.oneof(
    fc.integer({ min: from, max: from + 1e9 }),
    fc.integer({ min: from, max: from + 1e9 }).map((ms) => new Date(ms)),
    fc.constantFrom(...['00+02:00', '00Z', '00.5Z'].map((end) => `${year}-01-01T00:00:${end}`)),
  );
};
const word = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme-ascii' });
const json = fc.jsonValue({ maxDepth: 2 });

const retry = fc.record(
  {
    maxAttempts: fc.integer({ min: 1, max: 50 }),
    initialInterval: fc.constantFrom<Duration>('1s', 2_000, 'PT5S'),
    backoffCoefficient: fc.constantFrom(1, 2, 3.5),
    nonRetryableErrors: fc.array(fc.constantFrom('SmtpError', 'auth.*'), { maxLength: 2 }),
    jitter: fc.boolean(),
  },
  { requiredKeys: [] },
) satisfies fc.Arbitrary<{ [Name in keyof RetryPolicy]?: RetryPolicy[Name] | undefined }>;

const queue = freshName('answered');

/** Options whose readers do not say all of what they accept. */
const OWN: { [Name in keyof JobOptions]?: fc.Arbitrary<unknown> } = {
  queue: fc.constant(queue),
  priority: fc.integer({ min: -100, max: 100 }),
  pending: fc.boolean(),
  delayUntil: momentIn(2100),
  expiresAt: momentIn(2101),
  retry,
  maxAttempts: fc.integer({ min: 1, max: 50 }),
  tags: fc.array(word, { maxLength: 3 }),
  meta: fc.dictionary(
    word.filter((name) => name !== '__proto__' && !name.startsWith('trace')),
    json,
    { maxKeys: 3 },
  ),
  retention: fc.record(
    { completed: duration, discarded: duration, cancelled: duration, deadLetter: duration },
    { requiredKeys: [] },
  ),
  targetUrl: fc.constantFrom('https://app.example/jobs', 'https://app.example/others?v=1'),
  rateLimit: fc.constantFrom(
    { key: 'a' },
    { concurrency: 2 },
    { key: 'b', rate: 2, period: '30s', onLimit: 'reschedule' },
    { throttle: { limit: 1, period: 'minute' } },
  ),
  // No other job is the same.
  unique: fc
    .record({ period: duration, onConflict: fc.constantFrom('reject', 'ignore', 'replace') })
    .map((policy) => ({ ...policy, key: freshName('key') })),
  schema: fc.oneof(word, fc.constant({ type: 'array' })),
  version: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.constantFrom('1.0', '2026-11-01')),
};

/** Values that an option's reader says it accepts. */
function valuesOf(name: OptionName): fc.Arbitrary<unknown> {
  const own = OWN[camelName(name) as keyof JobOptions];
  if (own) return own;
  const { type, minimum, maximum, maxLength } = accepted(OPTION_READERS[name] as Reader<unknown>);
  if (type === 'integer') return fc.integer({ min: minimum as number, max: Math.min(maximum as number, 1e9) });
  if (type === 'boolean') return fc.boolean();
  const isName = (text: string) => text !== '.' && text !== '..';
  if (type === 'string')
    return word.filter((text) => isName(text) && text.length <= ((maxLength as number | undefined) ?? 20));
  throw new Error(`Say in OWN which values ${name} has: its reader does not.`);
}

const OFFERED = OPTION_NAMES.filter((name) => !factsOf(name).foreign);
const ARBITRARIES = Object.fromEntries(OFFERED.map((name) => [camelName(name), valuesOf(name)]));

/** Options that do not contradict each other; a job with a URL waits, so that it is not sent there. */
function consistent(given: Record<string, unknown>): JobOptions {
  const { maxAttempts, ...rest } = given;
  const start = given.targetUrl === undefined ? {} : { delayUntil: FAR };
  return { ...rest, ...(given.retry === undefined && { maxAttempts }), ...start, queue } as JobOptions;
}

const options = fc.record(ARBITRARIES, { requiredKeys: [] }).map(consistent);
/** All of them in one job. */
const everyOption = fc.record(ARBITRARIES).map(consistent);

/** The job without what only the server decides, and what has happened since. */
const told = ({ retryEffective, waitingFor, ...job }: Awaited<ReturnType<TocsinClient['enqueue']>>) => job;
const shown = async (client: TocsinClient, id: string) => told(await client.jobs.get(id));

const clients: Record<string, TocsinClient> = { minimal: liveClient(), full: liveClient({ answers: 'full' }) };
const client = clients.minimal as TocsinClient;

/** Options of a job that shows them, and a copy has: in the wire's names. */
const COPIED = optionsThat('shown');

describe.each(['minimal', 'full'])('the answer to an enqueue, %s', (answers) => {
  it('is the job with every option that was given', async () => {
    const asking = clients[answers] as TocsinClient;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(options, everyOption), { minLength: 1, maxLength: 3 }), async (list) => {
        const jobs = await Promise.all(list.map((given) => asking.enqueue('mail.send', [1], given)));
        for (const [index, answered] of jobs.entries()) {
          const job = told(answered);
          expect(job).toEqual(await shown(asking, job.id));
          const given = list[index] as Record<string, unknown>;
          for (const name of optionsThat('shown').map(camelName)) {
            if (name === 'retention' || given[name] === undefined) continue;
            expect(job).toHaveProperty([name], given[name]);
          }
        }
      }),
      { numRuns: histories(40) },
    );
  });
});

describe('the answer over a socket', () => {
  const { client: speaking, asked, sockets } = watched(undefined, { socket: true });
  afterAll(() => speaking.close());

  it('is the job with every option that was given', async () => {
    const posts = () => asked.filter((path) => path.startsWith('/jobs')).length;
    await until(async () => {
      const before = posts();
      await speaking.enqueue('mail.send', [1], { queue });
      return posts() === before;
    }, 'an enqueue over a socket');
    await fc.assert(
      fc.asyncProperty(fc.oneof(options, everyOption), async (given) => {
        const job = told(await speaking.enqueue('mail.send', [1], given));
        expect(job).toEqual(await shown(speaking, job.id));
      }),
      { numRuns: histories(40) },
    );
    expect(sockets.length).toBeGreaterThan(0);
  });
});

describe('a job like another', () => {
  it('has every option of it but its times', async () => {
    await fc.assert(
      fc.asyncProperty(everyOption, async (given) => {
        // Where it has ended, it does not stand in the way of another one that is unique by the same.
        const { id } = await client.enqueue('mail.send', [1], { ...given, pending: true });
        await client.cancel(id);
        const original = await server.job(id);
        const clone = `${V1}/admin/jobs/${id}/clone`;
        const job = (await server.ok(201, 'POST', clone, { options: { pending: true } })).job as Json;
        expect(job).toMatchObject({ priority: original.priority, retry_effective: original.retry_effective });
        for (const name of COPIED) expect([name, job[name]]).toEqual([name, original[name]]);
        expect(job).not.toHaveProperty('scheduled_at');
        expect(job).not.toHaveProperty('expires_at');
      }),
      { numRuns: histories(10) },
    );
  });
});

describe('a job that is changed', () => {
  const replaced = optionsThat('patch', 'plain');

  it('has every option that may change as it was written, and none after null', async () => {
    const changes = fc.record(Object.fromEntries(replaced.map((name) => [camelName(name), valuesOf(name)])));
    await fc.assert(
      fc.asyncProperty(everyOption, changes, async (given, change) => {
        const { id } = await client.enqueue('mail.send', [1], { ...given, pending: true });
        const before = await shown(client, id);
        expect(told(await client.patch(id, change as JobPatch))).toEqual({ ...before, ...change });
        expect(await shown(client, id)).toEqual({ ...before, ...change });
        const none = Object.fromEntries(Object.keys(change).map((name) => [name, null]));
        const bare = await client.patch(id, none as JobPatch);
        for (const name of Object.keys(change)) expect(bare).not.toHaveProperty(name);
      }),
      { numRuns: histories(10) },
    );
  });

  it('keeps the options that are fixed when it is made, and the refusal says so', async () => {
    const { id } = await client.enqueue('mail.send', [], { queue, pending: true });
    const fixed = OPTION_NAMES.filter((name) => factsOf(name).patch === undefined);
    expect(fixed).toContain('target_url');
    for (const name of fixed) {
      const { error } = await server.ok(400, 'PATCH', `${V1}/admin/jobs/${id}`, { [name]: 1 });
      expect(error?.message).toContain(`${name} cannot be changed; send priority, `);
    }
  });
});

it('a client offers every option of the table under its own name', () => {
  expect(Object.keys(ARBITRARIES).sort()).toEqual([...CLIENT_OPTIONS].sort());
});
