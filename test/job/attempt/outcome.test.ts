import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundedError } from '../../../src/job/attempt/bounded-error';
import type { AttemptOutcome } from '../../../src/job/attempt/outcome';
import { readAnswered } from '../../../src/job/attempt/read-outcome';
import { readAck, readNack } from '../../../src/job/attempt/read-report';

const NOW = 1_700_000_000_000;
const NAME = { job_id: '019a0000-0000-7000-8000-000000000000' };

/** What a nack or an ack says of the attempt, without its name. */
function reported(body: Record<string, unknown>, read = readNack): AttemptOutcome {
  const { job_id: _, ...outcome } = read({ ...NAME, ...body }, {}, NOW);
  return outcome;
}

const text = fc.string({ maxLength: 20 });
const error = fc.record(
  {
    code: text,
    type: text,
    message: text,
    retryable: fc.boolean(),
    details: fc.constantFrom(null, 7, { error_class: 'E' }),
    classes: fc.array(text, { maxLength: 3 }),
    kill: fc.boolean(),
    retry_in: fc.constantFrom('5s', 700, 'PT1M'),
    retry_at: fc.constantFrom(NOW, '2026-01-01T00:00:00Z'),
    stack: text,
  },
  { requiredKeys: [] },
);

describe('a pushed handler and a worker that pulls', () => {
  it('fail an attempt alike with the same error', () => {
    fc.assert(
      fc.property(fc.oneof(error, text), (given) => {
        const answered = readAnswered({ status: 'failed', error: given }, NOW);
        const pushed = answered.kind === 'failed' && { kind: 'failed', error: boundedError(answered.error) };
        expect(reported({ error: given })).toEqual(pushed);
      }),
    );
  });

  it('complete an attempt alike with the same result', () => {
    for (const result of [0, '', false, { a: [1] }]) {
      expect(reported({ result }, readAck)).toEqual(readAnswered({ status: 'completed', result }, NOW));
    }
  });

  it('snooze alike, with their steps and log', () => {
    const snooze = { in: 5_000, signal: 'go', steps: { a: { result: 1 } } };
    const log = [{ at: NOW, level: 'info', message: 'm' }];
    const nacked = reported({ requeue: true, attempt_used: false, snooze, log });
    expect(nacked).toMatchObject({ kind: 'snoozed', steps: '{"a":{"result":1}}', log });
    expect(nacked).toEqual(readAnswered({ status: 'snoozed', ...snooze, log }, NOW));
  });
});

describe('an error that cannot be read', () => {
  it.each([
    ['retryable', 'yes'],
    ['classes', [1, 'E']],
    ['retry_in', '10 seconds'],
    ['code', 7],
  ])('is refused in a nack, and counts as far as it can be read in an answer: %s', (member, value) => {
    const given = { message: 'm', [member]: value };
    expect(() => reported({ error: given })).toThrow(`error.${member}`);
    expect(readAnswered({ status: 'failed', error: given }, NOW)).toMatchObject({ error: { message: 'm' } });
  });
});
