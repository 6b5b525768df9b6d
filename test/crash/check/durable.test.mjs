/** The judge of durable steps: each test breaks one promise in a history that is sound otherwise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alter, done, history, job, rules, show } from './histories.mjs';

const acts = [
  { do: 'step', name: 'one', work_ms: 1 },
  { do: 'fail', attempt: 1 },
  { do: 'sleep', name: 'nap', ms: 100 },
  { do: 'wait', name: 'go', timeout_ms: 9_000, signalled: true },
  { do: 'both', acts: [{ name: 'a' }, { name: 'b' }] },
];
const values = { one: 'v1', go: 'p', a: 'va', b: 'vb' };
const error = { attempt: 1, code: 'Error', message: 'planned s 1', reason: null };

/** Four runs: one fails, one sleeps, one waits, one comes to the end. Another one was cut off in a step. */
function sound() {
  const durable = [];
  const tell = (run, event, at, more = {}) => durable.push({ token: 's', run, event, at, ...more });
  const did = (run, name, value, at) => {
    for (const event of ['begin', 'finish']) tell(run, event, at, { name, value });
    tell(run, 'resolved', at, { name, value });
  };
  const again = (run, name, at) => tell(run, 'resolved', at, { name, value: values[name] });
  const begin = (run, at, attempt) => tell(run, 'run', at + 5, { startedAt: at, attempt });
  begin('r1', 1_000, 1);
  did('r1', 'one', 'v1', 1_010);
  begin('r2', 1_100, 2);
  again('r2', 'one', 1_110);
  tell('r2', 'asleep', 1_120, { name: 'nap', ms: 100 });
  begin('r3', 1_220, 2);
  again('r3', 'one', 1_230);
  tell('r3', 'awake', 1_231, { name: 'nap', until: 1_215 });
  tell('r3', 'waiting', 1_232, { name: 'go' });
  begin('r4', 1_300, 2);
  again('r4', 'one', 1_301);
  tell('r4', 'awake', 1_302, { name: 'nap', until: 1_215 });
  tell('r4', 'heard', 1_303, { name: 'go', value: 'p' });
  tell('r4', 'begin', 1_304, { name: 'a', value: 'lost' });
  tell('r4', 'finish', 1_305, { name: 'a', value: 'lost' });
  begin('r5', 2_500, 3);
  again('r5', 'one', 2_501);
  tell('r5', 'awake', 2_502, { name: 'nap', until: 1_215 });
  tell('r5', 'heard', 2_503, { name: 'go', value: 'p' });
  did('r5', 'a', 'va', 2_510);
  did('r5', 'b', 'vb', 2_510);
  tell('r5', 'end', 2_520);
  const sent = { token: 's', name: 'go', payload: 'p', sentAt: 1_240, answeredAt: 1_250 };
  const lapse = { attempt: 2, code: 'visibility_timeout', message: '', reason: null };
  return history({
    jobs: [job('s', 'durable-push', { origin: 'durable', type: 'durable.work', plan: { token: 's', acts } })],
    enqueues: [{ tokens: ['s'], outcome: 'accepted', ids: ['id-s'] }],
    kills: [1_306],
    durable,
    signals: [
      { ...sent, outcome: 'unknown' },
      { ...sent, outcome: 'refused', status: 409 },
    ],
    shown: [
      done('s', 'durable-push', 3, {
        errors: [error, lapse],
        result: { token: 's', attempt: 3, values },
        createdAt: 900,
        endedAt: 2_530,
      }),
    ],
  });
}

/** A sound history, but for one event: found by its run, its kind and its name. */
function but(run, event, name, change) {
  const ledger = sound();
  const at = ledger.durable.findIndex((one) => one.run === run && one.event === event && one.name === name);
  ledger.durable.splice(at, 1, ...[change(ledger.durable[at])].flat());
  return ledger;
}

test('a job that failed, slept, waited and was cut off in a step is sound', () => {
  assert.deepEqual(rules(sound()), []);
});

test('a step that is done again after its call had returned is found', () => {
  const ledger = but('r3', 'resolved', 'one', (told) => [
    { ...told, event: 'begin' },
    { ...told, event: 'finish' },
    told,
  ]);
  assert.deepEqual(rules(ledger), ['step again']);
});

test('a handler that forgets what is recorded is found', () => {
  const ledger = but('r2', 'resolved', 'one', (told) =>
    ['begin', 'finish', 'resolved'].map((event) => ({ ...told, event, value: 'new' })),
  );
  assert.deepEqual(rules(ledger), ['step again', 'step result']);
});

test('a run that is over for the queue may still begin what a later one has done', () => {
  const late = but('r5', 'resolved', 'b', (told) => [told, { ...told, run: 'r4', event: 'begin' }]);
  assert.deepEqual(rules(late), []);
});

test('a result that changes, or that was never returned, is found', () => {
  assert.deepEqual(rules(but('r5', 'resolved', 'a', (told) => ({ ...told, value: 'lost' }))), ['step result']);
  assert.deepEqual(rules(but('r5', 'finish', 'b', () => [])), ['step result']);
  const ledger = sound();
  show(ledger, alter('s', { result: { token: 's', attempt: 3, values: { ...values, one: 'v2' } } }));
  assert.deepEqual(rules(ledger), ['step result']);
});

test('a sleep that ends early is found, by what was asked and by what is recorded', () => {
  assert.deepEqual(rules(but('r3', 'awake', 'nap', (told) => ({ ...told, at: 1_180 }))), ['sleep']);
  assert.deepEqual(rules(but('r3', 'awake', 'nap', (told) => ({ ...told, until: 1_300 }))), ['sleep']);
});

test('a signal that is lost, or refused without reason, is found', () => {
  assert.deepEqual(rules(but('r5', 'heard', 'go', (told) => ({ ...told, value: 'timed out' }))), [
    'signal',
    'step result',
  ]);
  const ledger = sound();
  ledger.signals.shift();
  assert.deepEqual(rules(ledger), ['signal']);
});

test('a step that was left out is found', () => {
  const ledger = sound();
  ledger.durable = ledger.durable.filter(({ name }) => name !== 'b');
  assert.deepEqual(rules(ledger), ['step']);
});

test('a job that does not come to its end is found', () => {
  const ledger = sound();
  show(ledger, alter('s', { state: 'scheduled', result: undefined, endedAt: undefined }));
  assert.deepEqual(rules(ledger), ['state']);
});

test('a sleep that uses an attempt is found', () => {
  const ledger = sound();
  show(ledger, alter('s', { attempt: 4, result: { token: 's', attempt: 4, values } }));
  assert.deepEqual(rules(ledger), ['attempts']);
  const other = sound();
  show(other, alter('s', { errors: [error, { ...error, attempt: 2 }] }));
  assert.deepEqual(rules(other), ['attempts']);
});

test('a failure without a kill is found', () => {
  assert.deepEqual(rules({ ...sound(), kills: [] }), ['attempts']);
});
