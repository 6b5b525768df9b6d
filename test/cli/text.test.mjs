// What commands say: explanations, tables, times.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load } from './cli.mjs';

const { explain } = await load('why.ts');
const { table, lengthText, whenText, printable } = await load('output.ts');
const { typeFilter, eventLine } = await load('commands/tail.ts');
const { settingsLines } = await load('settings.ts');
const { failureOf } = await load('failure.ts');

const NOW = Date.parse('2026-01-01T12:00:00.000Z');
const JOB = {
  ...{ id: '0190', type: 'email.send', queue: 'mail', state: 'available', attempt: 0, maxAttempts: 3 },
  ...{ createdAt: '2026-01-01T11:00:00.000Z', enqueuedAt: '2026-01-01T11:00:00.000Z' },
};

describe('why', () => {
  it("repeats the server's own reason", () => {
    const waitingFor = { reason: 'concurrency', since: '2026-01-01T11:59:00.000Z', detail: '20 of 20 jobs run.' };
    const { reason, text, since } = explain({ ...JOB, waitingFor }, undefined, NOW);
    assert.deepEqual([reason, text, since], ['concurrency', '20 of 20 jobs run.', '2026-01-01T11:59:00.000Z']);
  });

  it('names the command that ends the wait', () => {
    const hint = (reason) => explain({ ...JOB, waitingFor: { reason, since: '', detail: 'x' } }, undefined, NOW).hint;
    assert.deepEqual(['queue_paused', 'retry', 'behind'].map(hint), [
      'tocsin queues resume mail',
      'tocsin retry 0190',
      undefined,
    ]);
  });

  it('explains each state where the server does not', () => {
    const error = { code: 'x', type: 'SmtpError', message: 'no host', attempt: 1, occurredAt: JOB.createdAt };
    const cases = [
      [{}, { status: 'paused', available: 1, active: 0 }, /queue mail is paused/],
      [{}, { status: 'active', available: 7, active: 2 }, /7 jobs are available in mail, and 2 run/],
      [{}, undefined, /nothing has taken it/],
      [{ state: 'scheduled', scheduledAt: '2026-01-01T14:00:00.000Z' }, undefined, /in 2h/],
      [
        { state: 'retryable', attempt: 1, nextAttemptAt: '2026-01-01T12:00:05.000Z', error },
        undefined,
        /Attempt 1 of 3.*in 5s/,
      ],
      [{ state: 'pending' }, undefined, /activated/],
      [{ state: 'active', attempt: 1, workerId: 'w1' }, undefined, /running at w1, attempt 1 of 3/],
      [{ state: 'discarded', attempt: 3, error }, undefined, /discarded after attempt 3: SmtpError: no host/],
      [{ state: 'discarded', expiresAt: JOB.createdAt }, undefined, /expired/],
      [{ state: 'cancelled' }, undefined, /cancelled/],
      [{ state: 'completed', startedAt: JOB.createdAt, completedAt: JOB.createdAt }, undefined, /completed in 0 ms/],
    ];
    for (const [job, queue, says] of cases) assert.match(explain({ ...JOB, ...job }, queue, NOW).text, says);
  });
});

describe('output', () => {
  it('aligns columns, numbers to the right', () => {
    assert.equal(
      table(
        ['Q', 'N'],
        [
          ['mail', 5],
          ['a', 10],
        ],
      ),
      'Q      N\nmail   5\na     10',
    );
  });

  it('says times in two units at most', () => {
    assert.deepEqual([0, 59_400, 3_600_000, 90_061_000].map(lengthText), ['0s', '59s', '1h', '1d1h']);
    assert.equal(whenText('2026-01-01T11:58:30.000Z', NOW), '1m30s ago');
    assert.equal(whenText(undefined, NOW), undefined);
  });

  it('does not let a payload steer the terminal', () => {
    assert.equal(printable('a\u001b[2Jb\n'), 'a�[2Jb\n');
  });

  it('shows an event on one line, and filters by type of event or job', () => {
    const event = {
      ...{ id: 'evt_1', type: 'job.failed', subject: '0190', time: '2026-01-01T12:00:00.123Z' },
      data: { job_id: '0190', queue: 'mail', job_type: 'email.send', attempt: 2, error: 'a\nb' },
    };
    assert.equal(eventLine(event), '12:00:00.123  job.failed      mail  email.send  0190  attempt=2  error=a b');
    const wanted = (...types) => typeFilter(types)(event);
    assert.deepEqual(
      [wanted('job.*'), wanted('email.send'), wanted('email'), wanted('sms.*', '*.failed')],
      [true, true, false, true],
    );
  });

  it('says what the code declares and what an operator changed', () => {
    const deployment = {
      ...{ handlers: ['a.b'], queuesTotal: 1, limits: [{ key: 'stripe', override: {} }] },
      queues: [{ name: 'mail', changed: ['concurrency'] }],
      crons: [
        { name: 'nightly', state: 'deleted' },
        { name: 'hourly', state: 'declared', enabled: true },
      ],
    };
    assert.deepEqual(
      settingsLines(deployment).map(({ message }) => message),
      [
        'a.b',
        'in code: mail; changed by an operator: mail.concurrency',
        'in code: stripe; changed by an operator: stripe',
        'in code: nightly, hourly; changed by an operator: nightly (deleted)',
      ],
    );
  });

  it('cuts an unexpected error to its first line', () => {
    assert.equal(failureOf(new Error('first\n    at second')).message, 'first');
  });
});
