/** What `enqueue` answers has every option that was given, as the job has it: alone, gathered, and over a socket. */
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Duration, JobOptions, RetryPolicy, TocsinClient } from '../../src/client';
import { until } from '../support/clock';
import { freshName } from '../support/queue';
import { liveClient } from './live-client';
import { watched } from './watched';

const FAR = Date.UTC(2100, 0, 1);
const duration = fc.oneof(
  fc.integer({ min: 1, max: 86_400_000 }),
  fc.constantFrom('PT90S', '1h', '500ms', '12.5s', '7d'),
) as fc.Arbitrary<never>;
const moment = fc.oneof(
  fc.integer({ min: FAR, max: FAR + 1e9 }),
  fc.integer({ min: FAR, max: FAR + 1e9 }).map((ms) => new Date(ms)),
  fc.constantFrom('2100-01-01T00:00:00+02:00', '2100-01-01T00:00:00Z', '2100-01-01T00:00:00.5Z'),
);
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

/** Every option but those of which the client makes something else, or the job nothing: `id`, and a URL that must be allowed. */
const OPTIONS: { [Name in Exclude<keyof JobOptions, 'targetUrl' | 'id' | 'queue'>]: fc.Arbitrary<unknown> } = {
  priority: fc.integer({ min: -100, max: 100 }),
  delay: fc.integer({ min: 60_000, max: 86_400_000 }),
  delayUntil: moment,
  expiresAt: moment,
  retry,
  maxAttempts: fc.integer({ min: 1, max: 50 }),
  timeoutMs: fc.integer({ min: 1, max: 1e9 }),
  visibilityTimeoutMs: fc.integer({ min: 1, max: 1e9 }),
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
  pending: fc.boolean(),
  rateLimit: fc.constantFrom(
    { key: 'a' },
    { concurrency: 2 },
    { key: 'b', rate: 2, period: '30s', onLimit: 'reschedule' },
    { throttle: { limit: 1, period: 'minute' } },
  ),
  unique: fc.record({ period: duration, onConflict: fc.constantFrom('reject', 'ignore', 'replace') }),
  schema: fc.oneof(word, fc.constant({ type: 'array' })),
  version: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.constantFrom('1.0', '2026-11-01')),
};

/** Options that do not contradict each other. */
const options = fc.record(OPTIONS, { requiredKeys: [] }).map((given) => {
  const { delay: _, ...others } = given;
  const one = given.delayUntil === undefined ? given : others;
  const { maxAttempts: __, ...rest } = one;
  return (one.retry === undefined ? one : rest) as JobOptions;
});

/** As they are sent: no other job is the same. */
const own = ({ unique, ...given }: JobOptions): JobOptions =>
  ({ ...given, queue, ...(unique && { unique: { ...unique, key: freshName('key') } }) }) as JobOptions;

/** The job as the server tells it later, without what only it decides, and what has happened since. */
async function shown(client: TocsinClient, id: string) {
  const { retryEffective, waitingFor, ...job } = await client.jobs.get(id);
  return job;
}

const queue = freshName('answered');
const clients: Record<string, TocsinClient> = { minimal: liveClient(), full: liveClient({ answers: 'full' }) };

describe.each(['minimal', 'full'])('the answer to an enqueue, %s', (answers) => {
  it('is the job with every option that was given', async () => {
    const client = clients[answers] as TocsinClient;
    await fc.assert(
      fc.asyncProperty(fc.array(options, { minLength: 1, maxLength: 3 }), async (list) => {
        const jobs = await Promise.all(list.map((given) => client.enqueue('mail.send', [1], own(given))));
        for (const [index, answered] of jobs.entries()) {
          const { retryEffective, waitingFor, ...job } = answered;
          expect(job).toEqual(await shown(client, job.id));
          for (const name of ['tags', 'retry', 'unique', 'rateLimit', 'schema', 'version', 'meta'] as const) {
            const given = list[index]?.[name];
            if (given !== undefined) expect(job).toHaveProperty(name);
          }
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('the answer over a socket', () => {
  const { client, asked, sockets } = watched(undefined, { socket: true });
  afterAll(() => client.close());

  it('is the job with every option that was given', async () => {
    const posts = () => asked.filter((path) => path.startsWith('/jobs')).length;
    await until(async () => {
      const before = posts();
      await client.enqueue('mail.send', [1], { queue });
      return posts() === before;
    }, 'an enqueue over a socket');
    await fc.assert(
      fc.asyncProperty(options, async (given) => {
        const job = await client.enqueue('mail.send', [1], own(given));
        expect(job).toEqual(await shown(client, job.id));
      }),
      { numRuns: 40 },
    );
    expect(sockets.length).toBeGreaterThan(0);
  });
});
