// What commands say: explanations, tables, times.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load } from './cli.mjs';

const { explain, jobFacts, stepText, logText } = await load('why.ts');
const { table, lengthText, whenText, printable } = await load('output.ts');
const { typeFilter, eventLine } = await load('commands/tail.ts');
const { settingsLines } = await load('settings.ts');
const { failureOf, unanswered } = await load('failure.ts', '../producer/errors.ts');

const NOW = Date.parse('2026-01-01T12:00:00.000Z');
const JOB = {
  ...{ id: '0190', type: 'email.send', queue: 'mail', state: 'available', attempt: 0, maxAttempts: 3 },
  ...{ createdAt: '2026-01-01T11:00:00.000Z', enqueuedAt: '2026-01-01T11:00:00.000Z', meta: {} },
};

describe('why', () => {
  const waits = (waitingFor) => ({
    ...JOB,
    waitingFor: { since: '2026-01-01T11:59:00.000Z', detail: 'x', ...waitingFor },
  });

  it("repeats the server's own reason", () => {
    const { reason, text, since } = explain(waits({ reason: 'concurrency', detail: '20 of 20 jobs run.' }), {}, NOW);
    assert.deepEqual([reason, text, since], ['concurrency', '20 of 20 jobs run.', '2026-01-01T11:59:00.000Z']);
  });

  it('says moments beside now', () => {
    const detail = 'Last call at 2026-01-01T11:59:00.000Z: refused. It sleeps until 2026-01-01T14:00:00.000Z.';
    const { text } = explain(waits({ reason: 'handler_down', detail }), {}, NOW);
    assert.equal(text, 'Last call 1m ago: refused. It sleeps until 2026-01-01T14:00:00.000Z (in 2h).');
  });

  it('names the command that ends the wait, as it can be pasted', () => {
    const cases = [
      [{ reason: 'queue_paused' }, 'tocsin queues resume mail'],
      [{ reason: 'retry' }, 'tocsin retry 0190'],
      [{ reason: 'pending' }, 'tocsin activate 0190'],
      [{ reason: 'delayed' }, 'tocsin reschedule 0190'],
      [{ reason: 'snoozed' }, 'tocsin reschedule 0190'],
      [{ reason: 'signal', signal: "ann's word" }, "tocsin signal 0190 'ann'\\''s word'"],
      [{ reason: 'handler_down', target: 'https://a.example/x' }, 'tocsin targets resume https://a.example/x'],
      [{ reason: 'handler_down' }, undefined],
      [{ reason: 'behind' }, undefined],
    ];
    for (const [waitingFor, hint] of cases) assert.equal(explain(waits(waitingFor), {}, NOW).hint, hint);
  });

  it('does not offer to wake a handler that would sleep again', () => {
    const hint = (until) => explain(waits({ reason: 'snoozed' }), { night: { until } }, NOW).hint;
    assert.equal(hint(NOW + 3_600_000), undefined);
    assert.equal(hint(NOW - 3_600_000), 'tocsin reschedule 0190', 'this sleep is over');
  });

  it('tells the whole time of a job apart from its last run, and when its worker was last seen', () => {
    const [at, times] = [(minute) => `2026-01-01T11:${minute}:00.000Z`, { createdAt: '2026-01-01T10:00:00.000Z' }];
    Object.assign(times, { firstStartedAt: at('10'), startedAt: at('40') });
    const done = { ...JOB, ...times, state: 'completed', completedAt: at('41') };
    assert.equal(explain(done, {}, NOW).text, 'It has completed in 31m; its last run took 1m.');
    const told = Object.fromEntries(jobFacts(done, undefined, NOW));
    assert.equal(told['first run'], '2026-01-01T11:10:00.000Z (50m ago)');
    assert.equal(told['last run'], '2026-01-01T11:40:00.000Z (20m ago)');
    assert.deepEqual([told.created, told.total], ['2026-01-01T10:00:00.000Z (2h ago)', '1h41m']);
    const running = { ...JOB, state: 'active', attempt: 1, workerId: 'w1', startedAt: at('40') };
    Object.assign(running, { lastHeartbeatAt: at('59'), leaseExpiresAt: '2026-01-01T12:01:00.000Z' });
    const { text, until } = explain(running, {}, NOW);
    assert.equal(text, 'It is running at w1, attempt 1 of 3. Its worker was last seen 1m ago.');
    assert.equal(until, '2026-01-01T12:01:00.000Z');
  });

  it('names the job that undoes the steps of one that has ended, and the job that it undoes', () => {
    const undo = { jobId: '0191', state: 'active' };
    const cancelled = { ...JOB, state: 'cancelled', cancelledAt: JOB.createdAt, undo };
    const text = 'It was cancelled. Its steps are undone by job 0191, which is active.';
    assert.equal(explain(cancelled, {}, NOW).text, text);
    const error = { code: 'x', type: 'Refused', message: 'no', attempt: 1, occurredAt: JOB.createdAt };
    const discarded = { ...JOB, state: 'discarded', attempt: 1, error, undo: { jobId: '0191' } };
    const why = 'It was discarded after attempt 1: Refused: no. Its steps are undone by job 0191.';
    assert.equal(explain(discarded, {}, NOW).text, why);
    const facts = (job) => Object.fromEntries(jobFacts(job, undefined, NOW));
    assert.equal(facts(cancelled)['undone by'], '0191, which is active');
    assert.equal(facts({ ...JOB, meta: { undo_of: '0190' } }).undoes, '0190');
    assert.equal(stepText({ begun: true, undo: true }, NOW), 'begun, not finished');
  });

  it('names the worker whose event loop was blocked while the job ran', () => {
    const line = (at, fields) => ({ at: NOW + at, level: 'warn', message: 'stood still', fields });
    const log = [line(-120_000, { blocked_ms: 75_012 }), line(-60_000, { other: 1 })];
    const told = (lines) => Object.fromEntries(jobFacts(JOB, undefined, NOW, lines)).worker;
    assert.equal(told(log), 'its event loop was blocked for 75.0 s, 2026-01-01T11:58:00.000Z (2m ago)');
    assert.equal(told([]), undefined);
  });

  it('explains the states in which a job waits for nothing', () => {
    const error = { code: 'x', type: 'SmtpError', message: 'no host', attempt: 1, occurredAt: JOB.createdAt };
    const cases = [
      [{ state: 'active', attempt: 1, workerId: 'w1' }, /running at w1, attempt 1 of 3/],
      [{ state: 'discarded', attempt: 3, error }, /discarded after attempt 3: SmtpError: no host/],
      [{ state: 'discarded', expiresAt: JOB.createdAt }, /expired/],
      [{ state: 'cancelled' }, /cancelled/],
      [{ state: 'completed', startedAt: JOB.createdAt, completedAt: JOB.createdAt }, /completed in 0 ms/],
    ];
    for (const [job, says] of cases) assert.match(explain({ ...JOB, ...job }, {}, NOW).text, says);
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

  it('shows steps and lines of a log, each on one line', () => {
    const until = Date.parse('2026-01-01T14:00:00.000Z');
    const steps = [{ result: { a: 1 } }, { until }, { signal: { payload: 'yes', at: NOW } }, { timedOut: true }, {}];
    assert.deepEqual(
      steps.map((step) => stepText(step, NOW)),
      [
        'done: {"a":1}',
        'until 2026-01-01T14:00:00.000Z (in 2h)',
        'signal 2026-01-01T12:00:00.000Z (0s ago): yes',
        'timed out without a signal',
        'done: null',
      ],
    );
    const failed = { type: 'Refused', message: 'no' };
    assert.equal(stepText({ error: failed }, NOW), 'failed: {"type":"Refused","message":"no"}');
    assert.equal(
      stepText({ until, tries: 2, failed }, NOW),
      'failed 2 times, again 2026-01-01T14:00:00.000Z (in 2h): {"type":"Refused","message":"no"}',
    );
    const run = { queue: 'mail', type: 'email.send' };
    assert.equal(stepText({ until, run }, NOW), 'waits for email.send until 2026-01-01T14:00:00.000Z (in 2h)');
    assert.equal(stepText({ timedOut: true, run }, NOW), 'timed out before its jobs ended');
    const line = logText({ at: NOW, level: 'warn', message: 'a\nb', fields: { to: 'ada' } });
    assert.equal(line, '2026-01-01T12:00:00.000Z  WARN   a b  {"to":"ada"}');
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
    assert.deepEqual(settingsLines({ ...deployment, dataLocation: 'eu' })[0], {
      name: 'place',
      message: 'eu: all queues and settings; not the Worker, its logs, webhooks and analytics',
    });
  });

  it('names the innermost cause of a missing answer, and offers to start a queue only on this machine', () => {
    const coded = (code, message) => Object.assign(new Error(message), { code });
    const fetchFailed = (cause) => unanswered('No answer', true, new TypeError('fetch failed', { cause }));
    const failure = (cause, url) => failureOf(fetchFailed(cause), { url });
    const { message, hint } = failure(coded('ENOTFOUND', 'getaddrinfo'), 'https://nowhere.example');
    assert.equal(message, 'No queue answers at https://nowhere.example: no such host (ENOTFOUND).');
    assert.equal(hint, 'Set its address with --url or TOCSIN_URL.');
    const both = new AggregateError([coded('ECONNREFUSED', '::1'), coded('ECONNREFUSED', '127.0.0.1')]);
    const local = failure(both, 'http://localhost:8787');
    assert.equal(
      local.message,
      'No queue answers at http://localhost:8787: the connection was refused (ECONNREFUSED).',
    );
    assert.match(local.hint, /^Start it with "npx tocsin dev"/);
    assert.match(
      failure(coded('CERT', 'certificate has expired'), 'https://a.example').message,
      /: certificate has expired\.$/,
    );
  });

  it('cuts an unexpected error to its first line', () => {
    assert.equal(failureOf(new Error('first\n    at second')).message, 'first');
  });
});
