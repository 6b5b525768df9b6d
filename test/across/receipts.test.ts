/** What a producer is told of a batch, as an object and as text. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderBatch, Telling, writeBatch } from '../../src/across/receipts';
import { parseJob } from '../../src/job/envelope/parse';
import type { EnqueuedJob } from '../../src/rpc/receipts';

const NOW = Date.UTC(2026, 0, 1);

const entry = fc.record(
  {
    args: fc.array(fc.jsonValue()),
    meta: fc.dictionary(fc.string(), fc.jsonValue()),
    priority: fc.integer({ min: -100, max: 100 }),
    scheduled_at: fc.constant('+PT1H'),
    retry: fc.constant({ max_attempts: 7 }),
    x_more: fc.jsonValue(),
  },
  { requiredKeys: ['args'] },
);

/** How the queue took it: as it is, as the job of another entry, or with a body that it has changed. */
const taken = fc.constantFrom('new', 'deduplicated', 'changed');

describe('the answer to a batch', () => {
  it('says the same as text', () => {
    const jobs = fc.array(fc.tuple(entry, taken), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(jobs, fc.boolean(), (entries, isWarned) => {
        const parsed = entries.map(([given]) =>
          parseJob({ type: 'email.send', ...JSON.parse(JSON.stringify(given)) }, { now: NOW }),
        );
        const views = parsed.map(({ queue, job }, index): EnqueuedJob => {
          const how = entries[index]?.[1];
          const { type, priority, scheduledAt } = job;
          const body = how === 'changed' ? JSON.stringify({ type, args: ['other'], meta: {} }) : job.body;
          return {
            record: {
              ...{ id: '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f', queue, type, priority, attempt: 0, body, history: {} },
              ...(scheduledAt === undefined
                ? { state: 'available' as const }
                : { state: 'scheduled' as const, due_at: scheduledAt }),
              ...{ created_at: NOW, enqueued_at: NOW },
            },
            layers: {},
            ...(how === 'deduplicated' && { deduplicated: true as const }),
          };
        });
        const members = isWarned ? { warnings: ['nobody takes it'] } : {};
        const telling = new Telling({});
        const rendered = { ...renderBatch(views, (view, at) => telling.envelope(view, parsed[at])), ...members };
        expect(JSON.parse(writeBatch(views, parsed, {}, members))).toStrictEqual(JSON.parse(JSON.stringify(rendered)));
      }),
    );
  });
});
