/** Each test breaks one promise made to operators. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from '../check.mjs';
import { alter, done, history, job, rules, show } from './histories.mjs';

const run = { attempt: 1, life: 0, via: 'pull', leaseMs: 1_000, beats: [], outcome: 'failure' };
const nack = { attempt: 1, life: 0, kind: 'nack', outcome: 'accepted', answer: {} };
const error = { attempt: 1, code: 'planned', message: 'planned a 1', reason: null };

/** A job that died in its first life and completed in the second. */
function redriven(change = {}) {
  const dead = job('a', 'pull', { origin: 'redriven', maxAttempts: 1 });
  dead.plan = { ...dead.plan, end: 'exhaust', saved_in: 1 };
  return history({
    shown: [done('a', 'pull', 1, { life: 1, errors: [error], createdAt: 900 })],
    jobs: [dead],
    enqueues: [{ tokens: ['a'], outcome: 'accepted', ids: ['id-a'] }],
    runs: [
      { ...run, token: 'a', startedAt: 1_000 },
      { ...run, token: 'a', life: 1, startedAt: 2_000, outcome: 'success' },
    ],
    reports: [
      { ...nack, token: 'a' },
      { ...nack, token: 'a', life: 1, kind: 'ack' },
    ],
    redrives: [{ token: 'a', id: 'id-a', life: 1, outcome: 'accepted', sentAt: 1_900, answeredAt: 1_910 }],
    ...change,
  });
}

test('a second life that was asked for is sound', () => {
  assert.deepEqual(check(redriven()).violations, []);
});

test('a redrive that is lost, or that no one asked for, is found', () => {
  const ledger = redriven();
  ledger.runs.pop();
  ledger.reports.pop();
  show(ledger, alter('a', { life: 0, state: 'discarded', result: undefined }));
  assert.deepEqual(rules(ledger), ['redrive']);
  ledger.redrives[0].outcome = 'unknown';
  assert.deepEqual(rules(ledger), []);
  assert.deepEqual(rules(redriven({ redrives: [] })), ['redrive']);
});

test('a life that was given twice is found, by its answers, by its runs and by its errors', () => {
  const twice = redriven();
  twice.redrives.push({ ...twice.redrives[0] });
  assert.deepEqual(rules(twice), ['redrive']);
  const again = redriven();
  again.runs.push({ ...again.runs[1] });
  assert.ok(rules(again).includes('redrive'));
  const errors = redriven();
  show(errors, alter('a', { errors: [error, error] }));
  assert.deepEqual(rules(errors), ['redrive']);
});

test('a life that began before it was asked for, or had too many attempts, is found', () => {
  const early = redriven();
  early.runs[1].startedAt = 1_500;
  assert.deepEqual(rules(early), ['redrive']);
  const many = redriven();
  many.runs[1].attempt = 2;
  assert.ok(rules(many).includes('redrive'));
});

test('a last life that did not end as it had to is found', () => {
  const ledger = redriven();
  show(ledger, alter('a', { state: 'available', attempt: 0, result: undefined, errors: [error] }));
  assert.ok(rules(ledger).includes('redrive'));
});

test('a run in a paused queue is found, whatever began before or after', () => {
  const paused = (startedAt, outcome = 'accepted') => {
    const ledger = redriven();
    ledger.runs[0].startedAt = startedAt;
    ledger.pauses = [
      { queue: 'pull', kind: 'pause', outcome, sentAt: 1_090, answeredAt: 1_100 },
      { queue: 'other', kind: 'resume', outcome: 'accepted', sentAt: 1_200, answeredAt: 1_210 },
      { queue: 'pull', kind: 'resume', outcome: 'unknown', sentAt: 1_500, answeredAt: 1_510 },
    ];
    return rules(ledger);
  };
  assert.deepEqual(paused(1_000), []);
  assert.deepEqual(paused(1_300), ['pause']);
  assert.deepEqual(paused(1_300, 'unknown'), []);
  assert.deepEqual(paused(1_600), []);
});

test('a change that was acknowledged and does not hold is found', () => {
  const changed = (priority, ...outcomes) => {
    const shown = [{ ...done('p', 'pull', 0), state: 'scheduled', result: undefined, priority, tags: ['t'] }];
    return rules(
      history({
        shown,
        jobs: [job('p', 'pull', { origin: 'changed', parked: true })],
        enqueues: [{ tokens: ['p'], outcome: 'accepted', ids: ['id-p'] }],
        patches: outcomes.map((outcome, at) => ({ token: 'p', change: { priority: at + 1, tags: ['t'] }, outcome })),
      }),
    );
  };
  assert.deepEqual(changed(2, 'accepted', 'accepted'), []);
  assert.deepEqual(changed(1, 'accepted', 'accepted'), ['change']);
  assert.deepEqual(changed(0, 'accepted'), ['change']);
  assert.deepEqual(changed(1, 'accepted', 'unknown'), []);
  assert.deepEqual(changed(2, 'accepted', 'unknown'), []);
  assert.deepEqual(changed(2, 'accepted', 'refused'), ['change']);
});

test('a job that was ordered to start but still waits is found', () => {
  const released = (outcome) =>
    rules(
      history({
        shown: [{ ...done('p', 'pull', 0), state: 'scheduled', result: undefined }],
        jobs: [job('p', 'pull', { origin: 'changed', parked: true, released: outcome })],
        enqueues: [{ tokens: ['p'], outcome: 'accepted', ids: ['id-p'] }],
      }),
    );
  assert.deepEqual(released('unknown'), []);
  assert.deepEqual(released('accepted'), ['state']);
});

/** Three jobs of a campaign in two queues, in these states. */
function campaign(states, bulk, view = { completed: true, matched: 3, succeeded: 3, failed: 0 }) {
  const tokens = ['c1', 'c2', 'c3'];
  const queues = ['one', 'one', 'two'];
  return history({
    shown: tokens.map((token, at) => ({ ...done(token, queues[at], 0), state: states[at], result: undefined })),
    seen: { operations: [{ operation: 'op', ...view }] },
    jobs: tokens.map((token, at) =>
      job(token, queues[at], { origin: 'campaign', cancelledBy: 'operator', campaign: 'c', parked: true }),
    ),
    enqueues: [
      { tokens: ['c1', 'c2'], outcome: 'accepted', ids: ['id-c1', 'id-c2'] },
      { tokens: ['c3'], outcome: 'accepted', ids: ['id-c3'] },
    ],
    bulks: bulk ? [{ campaign: 'c', sentAt: 1_000, answeredAt: 1_010, ...bulk }] : [],
  });
}

test('a cancellation by filter comes to its end', () => {
  const accepted = { outcome: 'accepted', operation: 'op' };
  const [gone, still] = ['cancelled', 'scheduled'];
  assert.deepEqual(rules(campaign([gone, gone, gone], accepted)), []);
  assert.deepEqual(rules(campaign([gone, gone, still], accepted)), ['bulk']);
  assert.deepEqual(rules(campaign([gone, gone, gone], accepted, { completed: false })), ['bulk']);
  assert.deepEqual(rules(campaign([gone, gone, gone], accepted, { completed: true, succeeded: 4, failed: 0 })), [
    'bulk',
  ]);
});

test('a cancellation that was cut off took place whole in each queue, or not at all', () => {
  const [gone, still] = ['cancelled', 'scheduled'];
  assert.deepEqual(rules(campaign([gone, gone, still], { outcome: 'unknown' })), []);
  assert.deepEqual(rules(campaign([still, still, still], { outcome: 'unknown' })), []);
  assert.deepEqual(rules(campaign([gone, still, still], { outcome: 'unknown' })), ['bulk']);
});

test('a campaign that was cancelled by no one is found', () => {
  const [gone, still] = ['cancelled', 'scheduled'];
  assert.deepEqual(rules(campaign([still, still, gone], undefined)), ['bulk']);
  assert.deepEqual(rules(campaign([still, still, gone], { outcome: 'unsent' })), ['bulk']);
});
