/** The judge must find what it is there for: each test breaks one promise about single jobs in a history that is sound otherwise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from '../check.mjs';
import { alter, done, look, rules, show, sound, without } from './histories.mjs';

test('a sound history has no violations and its figures are counted', () => {
  const { violations, counts } = check(sound());
  assert.deepEqual(violations, []);
  assert.equal(counts.jobs.accepted, 3);
  assert.equal(counts.jobs.completed, 4);
  assert.equal(counts.batches.uncertain, 1);
});

test('a lost job is found', () => {
  const ledger = sound();
  show(ledger, without('a'));
  assert.deepEqual(rules(ledger), ['lost']);
});

test('a job that ended in two states is found', () => {
  const ledger = sound();
  show(ledger, (jobs) => [...jobs, { ...jobs[0], state: 'discarded', result: undefined }]);
  assert.deepEqual(rules(ledger), ['doubled']);
});

test('a job that was never enqueued is found', () => {
  const ledger = sound();
  show(ledger, (jobs) => [...jobs, done('ghost', 'pull', 1)]);
  assert.deepEqual(rules(ledger), ['unknown']);
});

test('a job whose enqueue was refused is found', () => {
  const ledger = sound();
  show(ledger, (jobs) => [...jobs, { ...done('f', 'pull', 0), state: 'pending', result: undefined }]);
  assert.ok(rules(ledger).includes('refused'));
});

test('a completion that was acknowledged and then lost is found', () => {
  const ledger = sound();
  show(ledger, alter('d', { state: 'available', result: undefined }));
  assert.ok(rules(ledger).includes('completion'));
});

test('a run after an acknowledged completion is found', () => {
  const ledger = sound();
  ledger.runs.push({
    token: 'd',
    attempt: 2,
    via: 'pull',
    leaseMs: 1_000,
    startedAt: 60_000,
    beats: [],
    outcome: 'success',
  });
  show(ledger, alter('d', { attempt: 2, result: { token: 'd', attempt: 2 } }));
  assert.ok(rules(ledger).includes('completion'));
});

test('half a batch over two queues is found', () => {
  const ledger = sound();
  ledger.runs = ledger.runs.filter(({ token }) => token !== 'e');
  show(ledger, without('e'));
  assert.deepEqual(rules(ledger), ['half batch']);
});

test('a batch of which nothing exists is sound when its answer was cut off', () => {
  const ledger = sound();
  ledger.runs = ledger.runs.filter(({ token }) => token !== 'd' && token !== 'e');
  ledger.reports = ledger.reports.filter(({ token }) => token !== 'd');
  show(ledger, (jobs) => without('d')(without('e')(jobs)));
  assert.deepEqual(rules(ledger), []);
});

test('an acknowledged failure that left no entry in the history is found', () => {
  const ledger = sound();
  show(ledger, alter('a', { errors: [] }));
  assert.deepEqual(rules(ledger), ['history', 'nack']);
});

test('more runs than attempts, and more attempts than allowed, are found', () => {
  const ledger = sound();
  ledger.runs.push({ ...ledger.runs[1], attempt: 2 });
  assert.ok(rules(ledger).includes('attempts'));
  const other = sound();
  other.jobs[1].maxAttempts = 1;
  show(other, alter('b', { attempt: 2, result: { token: 'b', attempt: 2 } }));
  assert.ok(rules(other).includes('attempts'));
});

test('attempt numbers that do not increase are found', () => {
  const ledger = sound();
  [ledger.runs[0].attempt, ledger.runs[1].attempt] = [2, 1];
  assert.ok(rules(ledger).includes('attempts'));
});

/** Job d succeeded in attempt 1, its report was cut off, and attempt 2 began at `startedAt`. */
function handedOver(startedAt, beats = []) {
  const ledger = sound();
  ledger.runs.find(({ token }) => token === 'd').beats = beats;
  ledger.runs.push({ token: 'd', attempt: 2, via: 'pull', leaseMs: 1_000, startedAt, beats: [], outcome: 'success' });
  const [ack] = ledger.reports.splice(2, 1);
  ledger.reports.push({ ...ack, outcome: 'unknown' }, { ...ack, attempt: 2 });
  const lapse = { attempt: 1, code: 'visibility_timeout', message: '', reason: null };
  show(ledger, alter('d', { attempt: 2, errors: [lapse], result: { token: 'd', attempt: 2 } }));
  return ledger;
}

test('a second run is sound once the lease of the first has ended, not before, and a heartbeat moves that', () => {
  assert.deepEqual(rules(handedOver(2_000)), []);
  assert.deepEqual(rules(handedOver(1_900)), ['lease']);
  assert.deepEqual(rules(handedOver(2_500, [1_700])), ['lease']);
  assert.deepEqual(rules(handedOver(2_700, [1_700])), []);
});

test('a push that a crash cut off is made good only after its lease, which outlives its time limit', () => {
  const again = (startedAt, kills) => {
    const ledger = sound();
    ledger.kills = kills;
    const first = ledger.runs.find(({ token }) => token === 'b');
    first.outcome = undefined;
    ledger.runs.push({ ...first, attempt: 2, startedAt, outcome: 'success' });
    const lapse = { attempt: 1, code: 'visibility_timeout', message: '', reason: null };
    show(ledger, alter('b', { attempt: 2, errors: [lapse], result: { token: 'b', attempt: 2 } }));
    return rules(ledger);
  };
  assert.deepEqual(again(12_000, [1_500]), []);
  assert.deepEqual(again(11_999, [1_500]), ['lease']);
  assert.deepEqual(again(2_000, []), []);
  assert.deepEqual(again(1_500, []), ['lease']);
});

test('a retry before its time is found', () => {
  const ledger = sound();
  ledger.runs[1].startedAt = 1_050;
  assert.deepEqual(rules(ledger), ['retry']);
});

test('a job for later that ran is found, and so is one that is not waiting any more', () => {
  const ledger = sound();
  show(ledger, alter('c', { state: 'available' }));
  assert.deepEqual(rules(ledger), ['state']);
  const other = sound();
  other.runs.push({
    token: 'c',
    attempt: 1,
    via: 'pull',
    leaseMs: 1_000,
    startedAt: 2_000,
    beats: [],
    outcome: 'success',
  });
  assert.ok(rules(other).includes('schedule'));
});

test('a job that forgot its time, or has another, is found; a time already past on arrival means now', () => {
  const seen = (change) => {
    const ledger = sound();
    show(ledger, alter('c', change));
    return rules(ledger);
  };
  assert.deepEqual(seen({ scheduledAt: undefined, createdAt: 1_000 }), ['schedule']);
  assert.deepEqual(seen({ scheduledAt: 90_001 }), ['schedule']);
  assert.deepEqual(seen({ scheduledAt: undefined, createdAt: 90_001 }), []);
});

test('a job that never ended is found', () => {
  const ledger = sound();
  show(ledger, alter('e', { state: 'active', result: undefined }));
  assert.deepEqual(rules(ledger), ['state']);
});

test('a cancelled job that continued is found', () => {
  const ledger = sound();
  ledger.changes.push({ token: 'b', kind: 'cancel', outcome: 'accepted', sentAt: 500, answeredAt: 510 });
  assert.deepEqual(rules(ledger), ['cancel']);
});

test('the result of another run is found', () => {
  const ledger = sound();
  show(ledger, alter('a', { result: { token: 'a', attempt: 1 } }));
  assert.deepEqual(rules(ledger), ['completion']);
});

test('deviations of counts from the list are found', () => {
  const ledger = sound();
  for (const audit of ledger.audits) audit.queues.pull.stats.completed++;
  assert.deepEqual(rules(ledger), ['counts']);
});

test('a job that changed between two looks is found', () => {
  const ledger = sound();
  ledger.audits[1] = look(
    alter('b', { endedAt: 5_001 })(Object.values(ledger.audits[1].queues).flatMap(({ jobs }) => jobs)),
  );
  assert.deepEqual(rules(ledger), ['durable']);
});

test('work that waited for a request is found', () => {
  const ledger = sound();
  const { startedAt } = ledger.runs.find(({ token }) => token === 'b');
  const quiet = { tokens: ['b'], dueAt: startedAt, deadline: startedAt + 7_000, late: ['b'] };
  ledger.quiet.push(quiet);
  assert.deepEqual(rules(ledger), ['asleep']);
  // On a slow machine its runs are cut off, one after the other: that is not waiting.
  quiet.deadline = startedAt + 5_000;
  assert.deepEqual(rules(ledger), []);
  const other = sound();
  other.untouched = { queues: ['push'], since: 0, touchedAt: 4_000 };
  assert.deepEqual(rules(other), ['asleep']);
});
