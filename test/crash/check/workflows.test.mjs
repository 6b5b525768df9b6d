/** Each test breaks one promise about workflows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from '../check.mjs';
import { alter, done, history, job, rules, show, without } from './histories.mjs';

const leaf = (token) => ({ kind: 'job', token });
const result = (token) => ({ token, attempt: 1 });
const jobOf = (token) => job(token, 'pull', { origin: 'workflow', cancelledBy: 'workflow', workflow: 'w' });

/** A job of the workflow from `from` on, ended 100 ms later. */
function ran(token, from, parents = [], more = {}) {
  const times = { createdAt: from, endedAt: from + 100 };
  return { ...done(token, 'pull', 1), workflow: 'w', parents, ...times, ...more };
}

const died = { state: 'discarded', result: undefined, errors: [{ attempt: 1, code: 'planned', message: '' }] };
const STATES = { completed: 'completed', discarded: 'failed', cancelled: 'cancelled' };

/** What the workflow says of its steps. */
function viewOf({ kind, token, children, callbacks }, shown, state) {
  const found = shown.find((one) => one.token === token);
  if (kind === 'job')
    return found ? { state: STATES[found.state], jobId: found.id } : { state: state ?? 'cancelled', jobId: null };
  return {
    steps: children.map((child) => viewOf(child, shown)),
    ...(callbacks && {
      callbacks: Object.fromEntries(
        Object.entries(callbacks).map(([name, child]) => [name, viewOf(child, shown, 'skipped')]),
      ),
    }),
  };
}

const leaves = ({ kind, token, children }) => (kind === 'job' ? [token] : children.flatMap(leaves));
const all = (tree) => [...leaves(tree), ...Object.values(tree.callbacks ?? {}).flatMap(all)];

/** A workflow with this tree, of which the server shows these jobs. */
function workflow(tree, shown, state = 'completed', entry = {}) {
  const tokens = leaves(tree);
  const count = (name) => shown.filter((one) => tokens.includes(one.token) && one.state === name).length;
  const figures = { job_count: tokens.length, completed_count: count('completed'), failed_count: count('discarded') };
  const run = { attempt: 1, via: 'pull', leaseMs: 1_000, beats: [], outcome: 'success' };
  const ended = shown.filter((one) => one.state === 'completed');
  return history({
    shown,
    seen: { workflows: [{ id: 'w', state, ...figures, ...viewOf(tree, shown) }] },
    jobs: all(tree).map((token) => ({ ...jobOf(token), maxAttempts: 1 })),
    workflows: [{ id: 'w', tree, outcome: 'accepted', sentAt: 900, answeredAt: 950, cancels: [], ...entry }],
    runs: ended.map(({ token, createdAt, parents }) => ({ ...run, token, startedAt: createdAt + 10, parents })),
    reports: ended.map(({ token }) => ({ token, attempt: 1, kind: 'ack', outcome: 'accepted', answer: {} })),
  });
}

const CHAIN = { kind: 'chain', children: [leaf('a'), leaf('b'), leaf('c')] };
const chain = () =>
  workflow(CHAIN, [ran('a', 1_000), ran('b', 1_100, [result('a')]), ran('c', 1_200, [result('a'), result('b')])]);
const failedChain = (...more) =>
  workflow(CHAIN, [ran('a', 1_000), ran('b', 1_100, [result('a')], died), ...more], 'failed');

const BATCH = {
  kind: 'batch',
  children: [leaf('a'), leaf('b')],
  callbacks: { on_complete: leaf('x'), on_success: leaf('y'), on_failure: leaf('z') },
};
const BOTH = [result('a'), result('b')];
const batch = (...callbacks) => workflow(BATCH, [ran('a', 1_000), ran('b', 1_000), ...callbacks]);

const need = (token, needs) => ({ ...leaf(token), needs });
const GRAPH = { kind: 'graph', children: [need('a', []), need('b', []), need('c', [0]), need('d', [2])] };
const graph = () =>
  workflow(GRAPH, [
    ran('a', 1_000),
    ran('b', 1_000),
    ran('c', 1_100, [result('a')]),
    ran('d', 1_200, [result('a'), null, result('c')]),
  ]);

/** Changes what the workflow itself says in both looks. */
function say(ledger, change) {
  for (const audit of ledger.audits) audit.workflows = audit.workflows.map((view) => ({ ...view, ...change }));
  return ledger;
}

test('workflows of every form are sound when each step has its place', () => {
  for (const ledger of [
    ...[chain(), failedChain(), graph()],
    batch(ran('x', 1_100, BOTH), ran('y', 1_100, BOTH)),
    workflow(
      { kind: 'group', children: [leaf('a'), leaf('b')] },
      [ran('a', 1_000), ran('b', 1_000, [], died)],
      'failed',
    ),
  ]) {
    assert.deepEqual(check(ledger).violations, []);
  }
});

test('a workflow inside another gets and gives results', () => {
  const tree = { kind: 'chain', children: [leaf('a'), { kind: 'group', children: [leaf('b'), leaf('c')] }, leaf('d')] };
  const parts = (last) => [
    ran('a', 1_000),
    ran('b', 1_100, [result('a')]),
    ran('c', 1_100, [result('a')]),
    ran('d', 1_200, last),
  ];
  assert.deepEqual(rules(workflow(tree, parts([result('a'), [result('b'), result('c')]]))), []);
  assert.deepEqual(rules(workflow(tree, parts([result('a'), result('c')]))), ['parent results']);
});

test('an accepted workflow that is gone is found; one that was never answered may be gone whole', () => {
  const gone = (outcome, shown) => {
    const ledger = chain();
    ledger.workflows[0].outcome = outcome;
    for (const audit of ledger.audits) audit.workflows = [{ id: 'w', missing: true }];
    if (!shown) [ledger.runs, ledger.reports] = [[], []];
    show(ledger, (jobs) => (shown ? jobs : []));
    return rules(ledger);
  };
  assert.deepEqual(gone('accepted', false), ['workflow lost']);
  assert.deepEqual(gone('unknown', true), ['workflow lost']);
  assert.deepEqual(gone('unknown', false), []);
});

test('a step that was started twice is found', () => {
  const ledger = chain();
  show(ledger, (jobs) => [...jobs, { ...jobs[1], id: 'another' }]);
  assert.deepEqual(rules(ledger), ['doubled']);
});

test('a later step that began too early is found', () => {
  const ledger = chain();
  show(ledger, alter('b', { createdAt: 1_099 }));
  assert.deepEqual(rules(ledger), ['workflow order']);
  const other = graph();
  show(other, alter('d', { createdAt: 1_199 }));
  assert.deepEqual(rules(other), ['workflow order']);
});

test('a step after one that failed is found', () => {
  assert.ok(rules(failedChain(ran('c', 1_200, [result('a'), null]))).includes('workflow order'));
  const [a, b, c] = [ran('a', 1_000, [], died), ran('b', 1_000), ran('c', 1_100, [null])];
  assert.deepEqual(rules(workflow(GRAPH, [a, b], 'failed')), []);
  assert.ok(rules(workflow(GRAPH, [a, b, c], 'failed')).includes('workflow order'));
});

test('a step that never started is found', () => {
  const stuck = (tree, shown) => rules(workflow(tree, shown, 'stuck'));
  assert.deepEqual(stuck(CHAIN, [ran('a', 1_000)]), ['workflow stuck']);
  assert.deepEqual(stuck({ kind: 'group', children: [leaf('a'), leaf('b')] }, [ran('a', 1_000)]), ['workflow stuck']);
  assert.deepEqual(stuck(GRAPH, [ran('a', 1_000), ran('b', 1_000)]), ['workflow stuck']);
});

test('results of the wrong jobs are found, in the envelope as in a run', () => {
  const ledger = chain();
  show(ledger, alter('c', { parents: [result('b'), result('a')] }));
  assert.deepEqual(rules(ledger), ['parent results']);
  const other = chain();
  other.runs[2].parents = [];
  assert.deepEqual(rules(other), ['parent results']);
});

test('callbacks that are missing, wrong, too early or there twice are found', () => {
  const [x, y, z] = ['x', 'y', 'z'].map((token) => ran(token, 1_100, BOTH));
  assert.deepEqual(rules(batch(x)), ['callback']);
  assert.deepEqual(rules(batch(x, y, z)), ['callback']);
  assert.deepEqual(rules(batch({ ...x, createdAt: 1_050 }, y)), ['workflow order']);
  assert.ok(rules(batch(x, { ...x, id: 'other' }, y)).includes('doubled'));
});

test('a state that does not follow from the jobs is found, of the whole and of a step', () => {
  assert.deepEqual(rules(say(chain(), { state: 'running' })), ['workflow state']);
  assert.deepEqual(rules(say(failedChain(), { state: 'completed' })), ['workflow state']);
  assert.deepEqual(rules(say(chain(), { completed_count: 2 })), ['workflow state']);
  const ledger = chain();
  ledger.audits[0].workflows[0].steps[1].state = 'failed';
  ledger.audits[1] = structuredClone(ledger.audits[0]);
  assert.deepEqual(rules(ledger), ['workflow step']);
});

test('a step that names another job is found', () => {
  const ledger = chain();
  ledger.audits[0].workflows[0].steps[1].jobId = 'another';
  ledger.audits[1] = structuredClone(ledger.audits[0]);
  assert.deepEqual(rules(ledger), ['workflow step']);
});

/** The second step of a chain was cancelled with its workflow, which was answered at 1150. */
function cancelled(outcome = 'accepted', more = {}) {
  const cancels = [{ outcome, sentAt: 1_140, answeredAt: 1_150 }];
  const last = ran('b', 1_100, [result('a')], { state: 'cancelled', result: undefined, attempt: 0, ...more });
  return workflow(CHAIN, [ran('a', 1_000), last], 'cancelled', { cancels });
}

test('a cancellation holds', () => {
  assert.deepEqual(rules(cancelled()), []);
  assert.deepEqual(rules(cancelled('unknown')), []);
  assert.deepEqual(rules(cancelled('refused')), ['workflow cancel']);
  assert.ok(rules(say(cancelled(), { state: 'failed' })).includes('workflow cancel'));
  assert.deepEqual(rules(cancelled('accepted', { createdAt: 1_200, endedAt: 1_300 })), ['workflow cancel']);
  assert.ok(rules(cancelled('accepted', { state: 'available' })).includes('state'));
  const ran = {
    token: 'b',
    attempt: 1,
    via: 'pull',
    leaseMs: 1_000,
    beats: [],
    startedAt: 1_200,
    parents: [result('a')],
  };
  const late = cancelled('accepted', { attempt: 1 });
  late.runs.push(ran);
  assert.deepEqual(rules(late), ['workflow cancel']);
});

test('a job that was cancelled while its workflow continued is found', () => {
  const ledger = failedChain();
  show(ledger, alter('b', { state: 'cancelled', errors: [] }));
  assert.ok(rules(ledger).includes('state'));
});

test('a workflow that waited for a request is found', () => {
  const ledger = chain();
  ledger.untouched = { queues: ['pull'], since: 1_000, touchedAt: 1_250 };
  assert.deepEqual(rules(ledger), ['asleep']);
  ledger.untouched.touchedAt = 1_301;
  assert.deepEqual(rules(ledger), []);
});

test('a workflow that changed between two looks is found', () => {
  const ledger = chain();
  show(ledger, without('nothing'));
  ledger.audits[0].workflows = structuredClone(ledger.audits[0].workflows);
  ledger.audits[1].workflows = [{ ...ledger.audits[1].workflows[0], started: 1 }];
  assert.deepEqual(rules(ledger), ['durable']);
});
