/** Each test breaks one promise about unique jobs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from '../check.mjs';
import { alter, done, history, job, rules, show } from './histories.mjs';

/** Two jobs of one fingerprint, one after the other; a third was told of the first. */
function sound({ fingerprint = 'pull:1', conflict = 'reject', outcome = 'accepted', batch } = {}) {
  const more = { origin: 'unique', cancelledBy: 'unique', fingerprint };
  const run = { attempt: 1, via: 'pull', leaseMs: 1_000, beats: [], outcome: 'success' };
  const ack = { attempt: 1, kind: 'ack', outcome: 'accepted', answer: {} };
  const first = { token: 'a', fingerprint, conflict: 'reject', outcome: 'accepted', sentAt: 990, answeredAt: 1_010 };
  return history({
    shown: [
      done('a', 'pull', 1, { createdAt: 1_000, endedAt: 2_000 }),
      done('b', 'pull', 1, { createdAt: 2_000, endedAt: 3_000 }),
    ],
    jobs: ['a', 'b', 'c'].map((token) => job(token, 'pull', more)),
    enqueues: [
      { tokens: ['a'], outcome: 'accepted', ids: ['id-a'] },
      { tokens: ['b'], outcome, ids: ['id-b'] },
      { tokens: ['c'], outcome: 'refused' },
    ],
    uniques: [
      first,
      { ...first, token: 'b', conflict, batch, outcome, sentAt: 1_990, answeredAt: 2_100 },
      { ...first, token: 'c', outcome: 'rejected', existing: 'id-a', sentAt: 1_500, answeredAt: 1_510 },
    ],
    runs: [
      { ...run, token: 'a', startedAt: 1_500 },
      { ...run, token: 'b', startedAt: 2_500 },
    ],
    reports: [
      { ...ack, token: 'a' },
      { ...ack, token: 'b' },
    ],
  });
}

/** The second job was made at 1900, 100 ms before the first one ended. */
function overlapping(options) {
  const ledger = sound(options);
  show(ledger, alter('b', { createdAt: 1_900 }));
  return ledger;
}

test('jobs of one fingerprint after each other are sound', () => {
  assert.deepEqual(check(sound()).violations, []);
});

test('two of one fingerprint at once are found, in a queue and across', () => {
  assert.deepEqual(rules(overlapping()), ['unique']);
  assert.deepEqual(rules(overlapping({ conflict: 'replace' })), ['unique']);
  assert.deepEqual(rules(overlapping({ fingerprint: 'across:1' })), ['unique']);
  const open = sound();
  show(open, alter('a', { state: 'active', result: undefined, endedAt: undefined }));
  assert.ok(rules(open).includes('unique'));
});

test('one that takes the place of another across queues, or in a batch, is hidden until that one has ended', () => {
  for (const options of [{ fingerprint: 'across:1' }, { batch: true }]) {
    const ledger = overlapping({ ...options, conflict: 'replace' });
    assert.deepEqual(rules(ledger), []);
    ledger.runs[1].startedAt = 1_950;
    assert.deepEqual(rules(ledger), ['unique']);
    ledger.runs[1].startedAt = 2_500;
    ledger.uniques[1].answeredAt = 1_950;
    assert.deepEqual(rules(ledger), ['unique']);
  }
});

test('a duplicate that was notified of no job, of another, or of one that was not there then, is found', () => {
  const told = (change) => {
    const ledger = sound();
    Object.assign(ledger.uniques[2], change);
    return rules(ledger);
  };
  for (const outcome of ['rejected', 'ignored']) {
    assert.deepEqual(told({ outcome }), []);
    assert.deepEqual(told({ outcome, existing: 'ghost' }), ['duplicate']);
    assert.deepEqual(told({ outcome, existing: 'id-b' }), ['duplicate']);
    assert.deepEqual(told({ outcome, sentAt: 2_100, answeredAt: 2_200 }), ['duplicate']);
  }
  const ledger = sound();
  ledger.jobs[0].fingerprint = 'pull:2';
  assert.deepEqual(rules(ledger), ['duplicate']);
});

test('a duplicate that still exists is found', () => {
  const ledger = sound();
  show(ledger, (jobs) => [...jobs, { ...done('c', 'pull', 0), state: 'cancelled', createdAt: 3_000, endedAt: 3_001 }]);
  assert.ok(rules(ledger).includes('refused'));
});

test('a job that was cancelled and that nothing replaced is found', () => {
  const cancelled = (conflict) => {
    const ledger = sound({ conflict });
    show(ledger, alter('a', { state: 'cancelled', result: undefined }));
    ledger.reports.shift();
    return rules(ledger);
  };
  assert.deepEqual(cancelled('replace'), []);
  assert.deepEqual(cancelled('reject'), ['state']);
});

test('a fingerprint that do not exist and that is not free is found', () => {
  const asked = (answer, change) => {
    const ledger = sound();
    if (change) show(ledger, alter('b', change));
    ledger.fresh.push({ fingerprint: 'pull:1', ...answer });
    return rules(ledger).includes('leak');
  };
  assert.equal(asked({ status: 201 }), false);
  assert.equal(asked({ status: 503 }), true);
  assert.equal(asked({ status: 409, existing: 'id-b' }), true);
  assert.equal(asked({ status: 409, existing: 'ghost' }), true);
  assert.equal(asked({ status: 409, existing: 'id-b' }, { state: 'available', endedAt: undefined }), false);
});
