/** Each test breaks one promise about cron entries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from '../check.mjs';
import { alter, done, history, rules, show, without } from './histories.mjs';

const at = (tick) => `e@${new Date(tick).toISOString()}`;

/** The job of a fire, that ends 100 ms later. */
function fired(tick, more = {}) {
  const id = `id-${tick}`;
  const times = { createdAt: tick + 5, endedAt: tick + 105 };
  return { ...done(at(tick), 'pull', 1), id, cron: 'e', tick, ...times, ...more };
}

/** Fires at 1000, 2000, 3000 and 4000 of an entry that was declared at 0 and paused for good at 4500. */
function sound(change = {}, jobs = [1_000, 2_000, 3_000, 4_000].map((tick) => fired(tick))) {
  const entry = {
    ...{ name: 'e', queue: 'pull', intervalMs: 1_000, overlap: 'allow', missed: 'fire_all', maxCatchup: 100 },
    ...{ sentAt: 0, answeredAt: 0, ...change },
    job: { token: 'e', queue: 'pull', maxAttempts: 5, plan: {}, parked: false, pending: false, cancelledBy: 'cron' },
  };
  const ended = jobs.filter(({ state }) => state === 'completed');
  const run = { attempt: 1, via: 'pull', leaseMs: 1_000, beats: [], outcome: 'success' };
  const executions = jobs.map(({ id, tick }) => ({ jobId: id, triggeredAt: 0, ...(tick !== undefined && { tick }) }));
  const fires = jobs.filter(({ tick }) => tick !== undefined).length;
  return history({
    shown: jobs,
    seen: { crons: [{ name: 'e', runs: jobs.length, fires, waiting: 0, enabled: false, history: executions }] },
    crons: [entry],
    cronChanges: [{ name: 'e', kind: 'pause', outcome: 'accepted', final: true, sentAt: 4_500, answeredAt: 4_510 }],
    runs: ended.map(({ token, createdAt }) => ({ ...run, token, startedAt: createdAt })),
    reports: ended.map(({ token }) => ({ token, attempt: 1, kind: 'ack', outcome: 'accepted', answer: {} })),
  });
}

const told = (kind, sentAt, outcome = 'accepted') => ({ name: 'e', kind, outcome, sentAt, answeredAt: sentAt + 10 });

test('an entry that fired at every beat is sound', () => {
  assert.deepEqual(check(sound()).violations, []);
});

test('a moment that fired twice is found', () => {
  const ledger = sound();
  show(ledger, (jobs) => [...jobs, { ...jobs[1], id: 'again' }]);
  assert.ok(rules(ledger).includes('cron double'));
  assert.ok(rules(ledger).includes('doubled'));
});

test('a beat that is missing is found, before, amid and after the others', () => {
  const lost = (...ticks) =>
    rules(
      sound(
        {},
        ticks.map((tick) => fired(tick)),
      ),
    );
  assert.deepEqual(lost(2_000, 3_000, 4_000), ['cron lost']);
  assert.deepEqual(lost(1_000, 2_000, 4_000), ['cron lost']);
  assert.deepEqual(lost(1_000, 2_000, 3_000), ['cron lost']);
  assert.deepEqual(lost(), ['cron lost']);
});

test('a beat for which there was no room among those that wait is not missed', () => {
  const ledger = sound({}, [fired(1_000), fired(2_000), fired(4_000)]);
  for (const { crons } of ledger.audits) crons[0].full = [[3_000, 3_000]];
  assert.deepEqual(rules(ledger), []);
});

test('a fire off its beat, before its moment, or out of order is found', () => {
  assert.deepEqual(rules(sound({ missed: 'fire_once' }, [fired(1_000), fired(2_500), fired(4_000)])), ['cron time']);
  const early = sound();
  show(early, alter(at(2_000), { createdAt: 1_999 }));
  assert.deepEqual(rules(early), ['cron time']);
  const swapped = sound();
  show(swapped, alter(at(2_000), { createdAt: 3_500, endedAt: 3_600 }));
  assert.deepEqual(rules(swapped), ['cron time']);
});

test('two jobs of an entry at once are found, unless it allows them', () => {
  const jobs = [fired(1_000, { endedAt: 2_006 }), fired(2_000), fired(3_000), fired(4_000)];
  assert.deepEqual(rules(sound({}, jobs)), []);
  for (const overlap of ['skip', 'enqueue', 'cancel_previous']) {
    assert.deepEqual(rules(sound({ overlap }, jobs)), ['cron overlap']);
    assert.deepEqual(rules(sound({ overlap })), []);
  }
});

test('more fires made up for than the policy allows are found', () => {
  const after = (missed, maxCatchup, ...ticks) => {
    const ledger = sound(
      { missed, maxCatchup },
      ticks.map((tick) => fired(tick, { createdAt: 3_600, endedAt: 3_700 })),
    );
    ledger.downs.push({ from: 1_500, until: 3_500 });
    return rules(ledger);
  };
  assert.deepEqual(after('fire_once', 100, 1_000, 3_000, 4_000).includes('cron missed'), false);
  assert.ok(after('fire_once', 100, 1_000, 2_000, 3_000, 4_000).includes('cron missed'));
  assert.ok(after('skip', 100, 1_000, 2_000, 3_000, 4_000).includes('cron missed'));
  assert.ok(after('fire_all', 1, 1_000, 2_000, 3_000, 4_000).includes('cron missed'));
  assert.equal(after('fire_all', 100, 1_000, 2_000, 3_000, 4_000).includes('cron missed'), false);
});

test('a fire of a time when the entry was paused is found', () => {
  const ledger = sound({ missed: 'fire_once' });
  ledger.cronChanges.unshift(told('pause', 1_500), told('resume', 2_500));
  assert.deepEqual(rules(ledger), ['cron pause']);
  show(ledger, without(at(2_000)));
  const [pause] = ledger.cronChanges;
  pause.outcome = 'unknown';
  assert.equal(rules(ledger).includes('cron pause'), false);
});

test('a fire after the last pause is found', () => {
  assert.ok(
    rules(
      sound(
        {},
        [1_000, 2_000, 3_000, 4_000, 5_000].map((tick) => fired(tick)),
      ),
    ).includes('cron pause'),
  );
});

test('books that do not agree with the jobs are found', () => {
  const broken = (change) => {
    const ledger = sound();
    for (const audit of ledger.audits) audit.crons = [{ ...audit.crons[0], ...change(audit.crons[0]) }];
    return rules(ledger);
  };
  assert.deepEqual(
    broken(() => ({ runs: 5 })),
    ['cron books'],
  );
  assert.deepEqual(
    broken(() => ({ fires: 3 })),
    ['cron books'],
  );
  assert.deepEqual(
    broken(({ history }) => ({ history: history.slice(1) })),
    ['cron books'],
  );
  assert.deepEqual(
    broken(({ history }) => ({ history: [...history, { jobId: 'ghost', tick: 1 }] })),
    ['cron books'],
  );
  assert.deepEqual(
    broken(({ history: [a, ...rest] }) => ({ history: [{ ...a, tick: 7 }, ...rest] })),
    ['cron books'],
  );
});

test('a job that was triggered by hand and is gone is found', () => {
  const ledger = sound();
  ledger.cronChanges.unshift({ ...told('trigger', 1_200), jobId: 'by hand' });
  assert.deepEqual(rules(ledger), ['lost']);
});
