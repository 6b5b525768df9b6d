import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defineHandlers } from '../../src/handler';
import { durationMs } from '../../src/handler/duration';
import { post, quiet, type Result } from './deliver';

/** What a handler may do with a job, taken from its first argument. */
const behaviours: Record<string, (value: unknown) => unknown> = {
  give: (value) => value,
  throw: (value) => {
    throw value;
  },
  reject: (value) => Promise.reject(value),
  hang: () => new Promise(() => undefined),
  bigint: () => 1n,
};

const worker = defineHandlers(
  {
    'test.act': (job) => behaviours[String(job.args[0])]?.(job.args[1]),
    'test.limited': { handler: (job) => job.args, concurrency: 1 },
  },
  quiet(),
);

const job = fc.record(
  {
    id: fc.uuid(),
    type: fc.constantFrom('test.act', 'test.limited', 'test.unknown', '__proto__'),
    args: fc.oneof(fc.tuple(fc.constantFrom(...Object.keys(behaviours)), fc.jsonValue()), fc.jsonValue()),
    attempt: fc.oneof(fc.integer(), fc.jsonValue()),
    timeout_ms: fc.constant(3),
    retry: fc.jsonValue(),
  },
  { requiredKeys: ['type', 'timeout_ms'] },
);
const delivery = fc.record({
  delivery_id: fc.oneof(fc.constantFrom('del_a', 'del_b', 'del_c'), fc.string({ unit: 'binary' })),
  job: fc.oneof({ weight: 4, arbitrary: job }, { weight: 1, arbitrary: fc.jsonValue() }),
});

describe('arbitrary deliveries', () => {
  it('get exactly one result for each delivery id and are never rejected', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(delivery, delivery, fc.jsonValue()), { maxLength: 12 }),
        async (deliveries) => {
          const response = await worker.fetch(post({ deliveries }), {});
          expect(response.status).toBe(200);
          const { results } = await response.json<{ results: Result[] }>();
          const ids = deliveries
            .map((entry) =>
              typeof entry === 'object' && entry !== null ? Reflect.get(entry, 'delivery_id') : undefined,
            )
            .filter((id) => typeof id === 'string' && id !== '');
          expect(results.map((result) => result.delivery_id)).toEqual([...new Set(ids)]);
          for (const { status, error } of results) {
            expect(status === 'completed' ? error === undefined : typeof error?.code === 'string').toBe(true);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it('of any text are answered with JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), async (body) => {
        const response = await worker.fetch(post(body), {});
        expect([200, 400]).toContain(response.status);
        await response.json();
      }),
    );
  });
});

describe('durations', () => {
  it('are read alike from numbers, digits, units and ISO 8601', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_153_600_000 }), (seconds) => {
        const ms = seconds * 1000;
        expect([ms, String(ms), `${ms}ms`, `${seconds}s`, `PT${seconds}S`].map(durationMs)).toEqual(Array(5).fill(ms));
      }),
    );
  });

  it('add up their ISO 8601 parts', () => {
    expect(durationMs('P1W2DT3H4M5.5S')).toBe(((9 * 24 + 3) * 3600 + 4 * 60 + 5.5) * 1000);
  });

  it.each(['P1Y', 'P', 'PT', 'P1DT', '1 s', '-5s', '', '5x', 'PT5', '36501d'])('%j is none', (text) => {
    expect(durationMs(text)).toBeUndefined();
  });
});
