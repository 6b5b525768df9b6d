/** The judge of jobs that wait for others: each test breaks one promise in a history that is sound otherwise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOf } from './children.mjs';
import { alter, done, history, job, rules, show, without } from './histories.mjs';

const plan = (token, acts = [], end = 'complete') => ({ token, acts, end, work_ms: 1 });
const fails = (token) => plan(token, [], 'fatal');
const nap = (token) => plan(token, [{ do: 'sleep', name: 'nap', ms: 500_000 }]);
const kid = (plan, queue = 'child-away') => ({ type: 'child.work', plan, options: { queue } });
const wait = (kind, name, plans, more = {}) => ({
  ...{ do: kind, name, timeout_ms: 500_000, isCaught: false, ...more },
  children: plans.map((plan) => kid(plan)),
});

/** Three generations: one child that runs another one, and several of which one fails. Then it fails and is undone. */
const deep = plan('p/held-1/0', [wait('run', 'run-1', [plan('p/held-1/0/run-1/0')])]);
const mark = { do: 'step', name: 'mark-1', work_ms: 1 };
const some = [plan('p/run-2/0'), fails('p/run-2/1')];
const acts = [mark, wait('run', 'held-1', [deep]), wait('all', 'run-2', some, { onFailure: 'return' })];
const parent = plan('p', acts, 'fatal');

/** One that is cancelled: a child goes on for long, one is detached. */
const kept = wait('all', 'run-2', [plan('c/run-2/0')], { detached: true });
const doomed = plan('c', [{ do: 'both', acts: [wait('all', 'run-1', [nap('c/run-1/0'), plan('c/run-1/1')]), kept] }]);

/** One whose children are stopped by a failure, or by its time limit, or are left when it ends. */
const stopped = wait('all', 'run-1', [fails('s/run-1/0'), nap('s/run-1/1')], { onFailure: 'stop', isCaught: true });
const late = wait('run', 'run-2', [nap('s/run-2/0')], { isLate: true, isCaught: true });
const race = wait('race', 'run-3', [nap('s/run-3/0')], { limit_ms: 10, isCaught: true });
const stops = plan('s', [{ do: 'fail', attempt: 1 }, stopped, late, race]);

const own = (token, plan, more = {}) =>
  job(token, 'child-home', { origin: 'children', type: 'child.work', plan, ...more });

function registered(token, plan, more) {
  const children = plan.acts.flatMap((act) => act.children ?? act.acts?.flatMap((one) => one.children) ?? []);
  const below = children.flatMap((child) =>
    registered(child.plan.token, child.plan, { parent: token, cancelledBy: 'parent', queue: 'child-away' }),
  );
  return [own(token, plan, more), ...below];
}

const planned = (token, code = 'fatal') => ({ attempt: 1, code, message: `planned ${token} 1`, reason: null });
const shown = (token, parent, more = {}) => {
  const queue = parent === undefined ? 'child-home' : 'child-away';
  const end = { createdAt: 1_000, endedAt: 2_000, result: { token, attempt: 1, value: `v ${token}` } };
  return done(token, queue, 1, { ...end, ...(parent && { parent: `id-${parent}` }), ...more });
};
const discarded = (token, parent, more = {}) =>
  shown(token, parent, { state: 'discarded', errors: [planned(token)], result: undefined, ...more });
const cancelled = (token, parent, more = {}) =>
  shown(token, parent, { state: 'cancelled', result: undefined, ...more });

/** Everything as it must be. */
function sound() {
  const children = [];
  const tell = (token, event, at, more = {}) => children.push({ token, run: 'r', event, at, ...more });
  const ends = (...tokens) => {
    for (const token of tokens) tell(token, 'end', 1_990, { outcome: 'completed', value: `v ${token}` });
  };
  const result = (token) => ({ token, attempt: 1, value: `v ${token}` });
  const error = (token) => ({ state: 'discarded', code: 'fatal', message: `The job failed: planned ${token} 1` });
  const isStopped = { state: 'cancelled', code: 'cancelled', message: 'Another job failed.' };
  const saw = (token, name, at, ...given) =>
    tell(token, 'saw', at, { name, ends: given.map((end, index) => ({ index, ...end })) });

  ends('p/held-1/0/run-1/0', 'p/held-1/0', 'p/run-2/0', 'c/run-1/1', 'c/run-2/0', 's');
  tell('p', 'begin', 1_010, { name: 'mark-1', value: 'm' });
  tell('p', 'resolved', 1_011, { name: 'mark-1', value: 'm' });
  for (const name of ['held-1', 'run-2']) tell('p', 'waiting', 1_012, { name });
  saw('p/held-1/0', 'run-1', 2_001, { result: result('p/held-1/0/run-1/0') });
  saw('p', 'held-1', 2_002, { result: result('p/held-1/0') });
  const two = [
    { id: 'id-p/run-2/0', result: result('p/run-2/0') },
    { id: 'id-p/run-2/1', error: error('p/run-2/1') },
  ];
  saw('p', 'run-2', 2_003, ...two);
  const undone = { end: 'discarded', isCertain: true };
  tell('p', 'undone', 2_200, { ...undone, name: 'held-1', jobIds: ['id-p/held-1/0'], value: 'v p/held-1/0' });
  tell('p', 'undone', 2_201, { ...undone, name: 'mark-1', jobIds: [], value: 'm' });
  tell('c', 'waiting', 1_500, { name: 'run-1' });
  tell('s', 'saw', 2_005, {
    name: 'run-1',
    ends: [
      { index: 0, id: 'id-s/run-1/0', error: error('s/run-1/0') },
      { index: 1, id: 'id-s/run-1/1', error: isStopped },
    ],
  });
  tell('s', 'saw', 2_006, { name: 'run-2', isOver: true });
  tell('s', 'saw', 2_007, { name: 'run-3', isOver: true });

  const undo = { token: 'p~undo', queue: 'child-home', origin: 'children', type: 'child.undone.undo', undoes: 'p' };
  const change = { token: 'c', kind: 'cancel', outcome: 'accepted', sentAt: 1_900, answeredAt: 1_950 };
  const accepted = (token) => ({ tokens: [token], outcome: 'accepted', ids: [`id-${token}`] });
  return history({
    jobs: [
      ...registered('p', parent, { type: 'child.undone' }),
      ...registered('c', doomed),
      ...registered('s', stops),
      undo,
    ],
    enqueues: ['p', 'c', 's'].map(accepted),
    changes: [change],
    kills: [],
    children,
    shown: [
      discarded('p', undefined, { endedAt: 2_100 }),
      shown('p/held-1/0', 'p'),
      shown('p/held-1/0/run-1/0', 'p/held-1/0'),
      shown('p/run-2/0', 'p'),
      discarded('p/run-2/1', 'p'),
      shown('p~undo', undefined, { undoes: 'id-p', result: { undone: 2 } }),
      cancelled('c', undefined, { endedAt: 1_940 }),
      cancelled('c/run-1/0', 'c', { endedAt: 1_980 }),
      shown('c/run-1/1', 'c'),
      shown('c/run-2/0', 'c'),
      shown('s', undefined, {
        attempt: 2,
        errors: [planned('s', 'Error')],
        endedAt: 2_100,
        result: { token: 's', value: 'v s' },
      }),
      discarded('s/run-1/0', 's'),
      cancelled('s/run-1/1', 's'),
      cancelled('s/run-2/0', 's'),
      cancelled('s/run-3/0', 's', { endedAt: 2_150 }),
    ],
  });
}

/** A sound history in which one job shows as something else. */
function but(token, change) {
  const ledger = sound();
  show(ledger, alter(token, change));
  return ledger;
}

/** A sound history, but for what one handler told. */
function untold(token, event, name, change = () => []) {
  const ledger = sound();
  const at = ledger.children.findIndex((one) => one.token === token && one.event === event && one.name === name);
  ledger.children.splice(at, 1, ...[change(ledger.children[at])].flat());
  return ledger;
}

const asleep = { state: 'scheduled', result: undefined, endedAt: undefined, errors: [] };

test('families that end by themselves, by a failure, and by a cancellation are sound', () => {
  assert.deepEqual(rules(sound()), []);
});

test('how a parent ends follows from its children', () => {
  const ofOne = (one, more) => endOf(plan('x', [wait('all', 'run-1', [plan('y'), one], more)]));
  assert.equal(ofOne(plan('z')), 'completed');
  assert.equal(ofOne(fails('z')), 'discarded');
  assert.equal(ofOne(fails('z'), { onFailure: 'stop' }), 'discarded');
  assert.equal(ofOne(fails('z'), { onFailure: 'return' }), 'completed');
  assert.equal(ofOne(fails('z'), { isCaught: true }), 'completed');
  assert.equal(ofOne(nap('z')), 'never');
  assert.deepEqual([parent, doomed, stops].map(endOf), ['discarded', 'never', 'completed']);
});

test('a parent that sleeps although its children have ended is found', () => {
  const ledger = but('p', { ...asleep, result: undefined });
  show(ledger, without('p~undo'));
  ledger.children = ledger.children.filter(({ event }) => event !== 'undone');
  assert.deepEqual(rules(ledger), ['asleep', 'state']);
});

test('a parent whose child has not ended is not said to sleep on its end', () => {
  const ledger = but('p', asleep);
  show(ledger, without('p~undo'));
  show(ledger, alter('p/run-2/0', asleep));
  const isLater = ({ token, event, name }) =>
    event === 'undone' || (token === 'p' && event === 'saw' && name === 'run-2');
  ledger.children = ledger.children.filter((told) => !isLater(told));
  assert.deepEqual(rules(ledger), ['state']);
});

test('a parent that is lost is found, and so are the children that it left', () => {
  const ledger = sound();
  show(ledger, without('c'));
  assert.deepEqual(rules(ledger), ['lost', 'orphan']);
});

test('a parent that ends otherwise than its plan says is found', () => {
  assert.deepEqual(rules(but('s', { state: 'discarded', result: undefined, errors: [planned('s')] })), ['state']);
  assert.deepEqual(rules(but('s', { state: 'cancelled', result: undefined })), ['state']);
  assert.deepEqual(rules(but('c/run-1/0', { state: 'completed' })), ['child result', 'state']);
});

test('a child that exists twice, or is in no plan, is found', () => {
  const twice = sound();
  show(twice, (jobs) => [...jobs, { ...shown('p/run-2/0', 'p'), id: 'id-again' }]);
  assert.deepEqual(rules(twice), ['doubled']);
  const unknown = sound();
  show(unknown, (jobs) => [...jobs, shown('p/run-2/2', 'p')]);
  assert.deepEqual(rules(unknown), ['unknown']);
});

test('a child that was never started is found', () => {
  const ledger = sound();
  show(ledger, without('s/run-2/0'));
  assert.deepEqual(rules(ledger), ['child lost']);
});

test('a child that began with another one, and ended with it, is found when it is lost', () => {
  const a = wait('run', 'run-1', [fails('b/run-1/0')]);
  const both = plan('b', [{ do: 'both', acts: [a, wait('run', 'run-2', [plan('b/run-2/0')])] }]);
  const error = { state: 'discarded', code: 'fatal', message: 'planned b/run-1/0 1' };
  const told = { token: 'b', run: 'r', event: 'saw', at: 2_010 };
  const result = { token: 'b/run-2/0', attempt: 1, value: 'v b/run-2/0' };
  const ledger = history({
    jobs: registered('b', both),
    enqueues: [{ tokens: ['b'], outcome: 'accepted', ids: ['id-b'] }],
    children: [
      { token: 'b/run-2/0', run: 'r', event: 'end', at: 1_990, value: result.value },
      { ...told, name: 'run-1', ends: [{ index: 0, id: 'id-b/run-1/0', error }] },
      { ...told, name: 'run-2', ends: [{ index: 0, result }] },
    ],
    shown: [discarded('b'), discarded('b/run-1/0', 'b'), shown('b/run-2/0', 'b')],
  });
  assert.deepEqual(rules(ledger), []);
  show(ledger, without('b/run-2/0'));
  ledger.children.pop();
  assert.deepEqual(rules(ledger), ['child lost', 'unseen']);
});

test('a child of another parent is found', () => {
  assert.deepEqual(rules(but('s/run-1/0', { parent: 'id-p' })), ['orphan']);
});

test('a parent that ended without the end of a child is found', () => {
  assert.deepEqual(rules(untold('s', 'saw', 'run-1')), ['unseen']);
});

test('a result that the child did not give is found', () => {
  const other = (told) => ({
    ...told,
    ends: [{ index: 0, result: { token: 'p/held-1/0', attempt: 1, value: 'lost' } }],
  });
  assert.deepEqual(rules(untold('p', 'saw', 'held-1', other)), ['child result']);
  assert.deepEqual(rules(but('c/run-2/0', { result: { token: 'c/run-2/0', value: 'lost' } })), ['child result']);
  assert.deepEqual(rules(untold('p/held-1/0', 'saw', 'run-1', (told) => ({ ...told, at: 1_900 }))), ['child result']);
});

test('an end of another child, or none at all, is found', () => {
  const changed = (change) => (told) => ({ ...told, ends: change(told.ends) });
  const alters = [
    ([one]) => [one],
    ([one, two]) => [one, { ...two, id: one.id }],
    ([one, two]) => [one, { ...two, error: { ...two.error, message: 'another' } }],
    ([one, two]) => [one, { ...two, error: { ...two.error, code: 'another' } }],
    ([one, two]) => [one, { ...two, error: { ...two.error, state: 'cancelled' } }],
    ([one, two]) => [{ ...one, result: undefined, error: two.error }, two],
    ([one, two]) => [one, { ...two, error: undefined, result: one.result }],
  ];
  for (const change of alters) assert.deepEqual(rules(untold('p', 'saw', 'run-2', changed(change))), ['child result']);
  const over = (told) => ({ ...told, ends: undefined, isOver: true });
  assert.deepEqual(rules(untold('p', 'saw', 'run-2', over)), ['child result']);
});

test('a child that was reported as stopped may have completed meanwhile', () => {
  const shortened = sound();
  const done = shown('s/run-1/1', 's', { endedAt: 2_004 });
  shortened.jobs.find(({ token }) => token === 's/run-1/1').plan.acts = [];
  shortened.children.push({ token: done.token, run: 'r', event: 'end', at: 1_990, value: done.result.value });
  show(shortened, alter(done.token, done));
  assert.deepEqual(rules(shortened), []);
});

test('a child that continues after its parent was cancelled is found', () => {
  assert.deepEqual(rules(but('c/run-1/0', asleep)), ['left running', 'state']);
});

test('a child that continues after the failure of another one, its time limit, or a race, is found', () => {
  for (const token of ['s/run-1/1', 's/run-2/0', 's/run-3/0']) {
    assert.deepEqual(rules(but(token, asleep)), ['left running', 'state']);
  }
});

test('a detached child that is cancelled with its parent is found', () => {
  assert.deepEqual(rules(but('c/run-2/0', { state: 'cancelled', result: undefined })), ['detached']);
});

test('a detached child may run for longer than its parent, and must end', () => {
  assert.deepEqual(rules(but('c/run-2/0', asleep)), ['state']);
});

test('a child that is cancelled while its parent waits for it is found', () => {
  assert.deepEqual(rules(but('c/run-1/1', { state: 'cancelled', result: undefined, endedAt: 1_500 })), ['state']);
});

test('a wait that uses an attempt, and a failure without a kill, are found', () => {
  assert.deepEqual(rules(but('s', { attempt: 3 })), ['attempts']);
  const errors = [planned('s', 'Error'), { attempt: 2, code: 'visibility_timeout', message: '', reason: null }];
  assert.deepEqual(rules(but('s', { attempt: 3, errors })), ['attempts']);
  assert.deepEqual(rules({ ...but('s', { attempt: 3, errors }), kills: [1_500] }), []);
});

test('a failure that was not undone, and an undo that did not end, are found', () => {
  const ledger = sound();
  show(ledger, without('p~undo'));
  assert.deepEqual(rules(ledger), ['undo']);
  assert.deepEqual(rules(but('p~undo', { ...asleep, state: 'retryable' })), ['state', 'undo']);
  assert.deepEqual(rules(but('p~undo', { undoes: 'id-c' })), ['undo']);
});

test('a step, or a child, that was not undone is found', () => {
  assert.deepEqual(rules(untold('p', 'undone', 'mark-1')), ['undo']);
  assert.deepEqual(rules(untold('p', 'undone', 'held-1')), ['undo']);
});

test('a step that was cut off is undone, unless it is recorded with the answer alone', () => {
  const ledger = sound();
  const cutOff = { run: 'r', event: 'begin', at: 1_500, name: 'mark-1', value: 'm' };
  ledger.children.push({ ...cutOff, token: 'c' });
  ledger.jobs.find(({ token }) => token === 'c').type = 'child.undone';
  assert.deepEqual(rules(ledger), ['undo']);
  const single = sound();
  single.children.push({ ...cutOff, token: 'c/run-1/0' });
  single.jobs.find(({ token }) => token === 'c/run-1/0').type = 'child.undone';
  assert.deepEqual(rules(single), []);
  single.children.push({ ...cutOff, token: 'c/run-1/0', event: 'resolved' });
  assert.deepEqual(rules(single), ['undo']);
});

test('a job that completed and was undone is found', () => {
  const completed = { state: 'completed', errors: [], result: { token: 'p', value: 'v p' } };
  const ledger = but('p', completed);
  ledger.jobs[0].plan = { ...parent, end: 'complete' };
  ledger.children.push({ token: 'p', run: 'r', event: 'end', at: 2_090, value: 'v p' });
  assert.deepEqual(rules(ledger), ['undo']);
  show(ledger, without('p~undo'));
  assert.deepEqual(rules(ledger), ['undo']);
  ledger.children = ledger.children.filter(({ event }) => event !== 'undone');
  assert.deepEqual(rules(ledger), []);
});

test('an undo before the end, without the result, or for another end or child, is found', () => {
  const changes = [{ at: 2_000 }, { value: 'lost' }, { isCertain: false }, { end: 'cancelled' }];
  for (const change of changes) {
    assert.deepEqual(rules(untold('p', 'undone', 'mark-1', (told) => ({ ...told, ...change }))), ['undo']);
  }
  assert.deepEqual(rules(untold('p', 'undone', 'held-1', (told) => ({ ...told, jobIds: ['id-c'] }))), ['undo']);
});

test('a job that ran and is in no plan is found', () => {
  const ledger = sound();
  ledger.children.push({ token: 'x', run: 'r', event: 'run', at: 1_000, attempt: 1 });
  assert.deepEqual(rules(ledger), ['unknown']);
});
