import fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Job } from '../../src/handler';
import { defineHandlers } from '../../src/handler';
import { named, wired } from '../../src/producer/names';
import { deliverOne, quiet } from '../handler/deliver';

/** A job with names of the user's own wherever there may be any. */
const WIRE = {
  id: 'x',
  max_attempts: 3,
  args: [{ user_id: 1 }],
  meta: { trace_id: 'a', userName: 'b' },
  result: { sent_at: 1 },
  retry: { max_interval: null, jitter: { kind: 'per_attempt', amount: '1s' } },
  errors: [{ occurred_at: 'then', details: { http_status: 500 } }],
  checkpoint: { state: { page_no: 7 }, metadata: { my_key: 1 }, created_at: 'then' },
  parent_results: [{ a_b: 1 }],
  progress_data: { rows_done: 5 },
  steps: { charge_card: { result: { a_b: 1 } }, bookFlight: { signal: { payload: { paid_by: 'x' }, at: 1 } } },
  log: [{ message: 'x', fields: { http_status: 500 } }],
  next_attempt_at: 'soon',
  groups: { order: 'fair', weights: { a_b: 1 }, limits: { a_b: { max_waiting: 1, rate: { limit: 1 } } } },
};

describe('names', () => {
  it('are camelCase in TypeScript, except those that are the user’s', () => {
    expect(named(WIRE)).toEqual({
      id: 'x',
      maxAttempts: 3,
      args: WIRE.args,
      meta: WIRE.meta,
      result: WIRE.result,
      retry: { maxInterval: null, jitter: { kind: 'per_attempt', amount: '1s' } },
      errors: [{ occurredAt: 'then', details: { http_status: 500 } }],
      checkpoint: { state: { page_no: 7 }, metadata: { my_key: 1 }, createdAt: 'then' },
      parentResults: WIRE.parent_results,
      progressData: WIRE.progress_data,
      steps: WIRE.steps,
      log: WIRE.log,
      nextAttemptAt: 'soon',
      groups: { order: 'fair', weights: { a_b: 1 }, limits: { a_b: { maxWaiting: 1, rate: { limit: 1 } } } },
    });
  });

  it('come back as they were on the wire, and stay as they are there', () => {
    expect(wired(named(WIRE))).toEqual(WIRE);
    expect(wired(WIRE)).toEqual(WIRE);
    const name = fc.stringMatching(/^[a-z][a-z0-9]{0,3}(_[a-z][a-z0-9]{0,3}){0,3}$/);
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        fc.integer(),
        fc.string(),
        fc.constant(null),
        fc.array(tie('tree')),
        fc.dictionary(name, tie('tree')),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        expect(wired(named(value))).toEqual(value);
      }),
    );
  });

  it('leave dates and other values whole', () => {
    const date = new Date(0);
    expect(wired({ notBefore: date })).toEqual({ not_before: date });
  });
});

it('a handler gets its job in camelCase, its payload untouched', async () => {
  let seen: Job | undefined;
  const worker = defineHandlers((job) => {
    seen = job;
  }, quiet());
  const job = { type: 'test.names', max_attempts: 4, args: [{ user_id: 1 }], meta: { trace_id: 'a' } };
  expect((await deliverOne(worker, {}, job)).status).toBe('completed');
  expect(seen).toMatchObject({ maxAttempts: 4, args: [{ user_id: 1 }], meta: { trace_id: 'a' } });
  expectTypeOf<Job['maxAttempts']>().toEqualTypeOf<number>();
  expectTypeOf<Job<[{ user_id: number }]>['args']>().toEqualTypeOf<[{ user_id: number }]>();
  // @ts-expect-error the name on the wire
  expect(seen?.max_attempts).toBeUndefined();
});
