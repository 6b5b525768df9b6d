/**
 * Strict groups served in chunks, under random histories with failures: whatever happens, no job begins before an
 * earlier one of its group has ended, a group has one call at a time, and in the end every job has ended.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Report } from '../../../src/job/attempt/outcome';
import type { Sizes } from '../../../src/queue/store/sizes';
import { clock, HOUR, SECOND, T0 } from '../../support/clock';
import { histories } from '../../support/long';
import { newJob, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

const WORKER = 'w';
const LEASE_MS = 10 * SECOND;

type How = 'completed' | 'failed' | 'slowly' | 'fatally' | 'requeued' | 'returned' | 'snoozed';

type Act =
  | { do: 'add'; group: string; type: string; count: number }
  | { do: 'claim'; count: number; size: number; wait: number; worker: string }
  /** Reports these of the jobs that run, in this order, together or one by one. */
  | { do: 'report'; jobs: { pick: number; how: How }[]; together: boolean }
  | { do: 'cancel'; pick: number }
  | { do: 'renew'; pick: number }
  | { do: 'pass'; ms: number }
  | { do: 'evict' }
  | { do: 'roll-back' };

const how = fc.constantFrom<How>(
  'completed',
  'completed',
  'failed',
  'failed',
  'slowly',
  'fatally',
  'requeued',
  'returned',
  'snoozed',
);
const pick = fc.nat(30);

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('add' as const),
      group: fc.constantFrom('a', 'a', 'b', 'c'),
      type: fc.constantFrom('chunked', 'chunked', 'chunked', 'single'),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      count: fc.integer({ min: 1, max: 4 }),
      size: fc.constantFrom(3, 3, 3, 2),
      wait: fc.constantFrom(0, 0, 2_000),
      worker: fc.constantFrom(WORKER, WORKER, 'v'),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      jobs: fc.array(fc.record({ pick, how }), { minLength: 1, maxLength: 4 }),
      together: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('renew' as const), pick }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 900, 1_000, 2_500, 11 * SECOND) }),
  },
  { weight: 1, arbitrary: fc.constant<Act>({ do: 'evict' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ do: 'roll-back' }) },
);

const sizes: fc.Arbitrary<Partial<Sizes>> = fc.constantFrom(
  {},
  {},
  { entries: 4, memory: 100, memoryEach: 100, holders: 1, chunkJobs: 4, chunkLanes: 1, ahead: 4 },
  { entries: 6, memory: 150, memoryEach: 150, holders: 0, chunkJobs: 5, chunkLanes: 2, quiet: 2 },
);

interface Known {
  id: string;
  group: string;
}

class Play {
  private readonly queue = new TestQueue();
  /** In the order in which they came. */
  private readonly jobs: Known[] = [];
  private readonly bounds: Partial<Sizes>;

  constructor(bounds: Partial<Sizes>) {
    this.bounds = bounds;
  }

  async run(acts: readonly Act[]): Promise<void> {
    clock.set(T0);
    await this.queue.api.configure({ groups: { order: 'strict' } } as never);
    await this.bound();
    for (const one of acts) await this.play(one);
    await this.drain();
  }

  private bound(): Promise<void> {
    return this.queue.inside(({ q }) => {
      Object.assign(q.store.sizes, this.bounds);
      q.load();
    });
  }

  private async play(one: Act): Promise<void> {
    const { queue } = this;
    if (one.do === 'add') await this.add(one);
    else if (one.do === 'claim') await this.claim(one);
    else if (one.do === 'report') await this.report(one);
    else if (one.do === 'cancel')
      await queue.api.cancel(this.picked(await this.inState(['scheduled', 'available', 'retryable']), one.pick));
    else if (one.do === 'renew') {
      const job_ids = [this.picked(await this.inState(['active']), one.pick)];
      await queue.api.heartbeat({ worker_id: WORKER, job_ids, visibility_timeout_ms: LEASE_MS });
    } else if (one.do === 'pass') await queue.passTo(Date.now() + one.ms);
    else if (one.do === 'evict') {
      await queue.evict();
      await this.bound();
    } else {
      await queue.inside(({ engine }) => {
        try {
          engine.writeNow(() => {
            engine.q.store.changes++;
            throw new Error('a neighbour fails');
          });
        } catch {}
      });
    }
  }

  private async add({ group, type, count }: Act & { do: 'add' }): Promise<void> {
    const one = newJob({
      type,
      group,
      body: { group, max_attempts: 3, retry: steady(3) } as never,
      retry: steady(3) as never,
    });
    const added = await this.queue.enqueue(
      ...Array.from({ length: count }, () => ({ ...one, body: JSON.parse(one.body) })),
    );
    this.jobs.push(...added.map(({ id }) => ({ id, group })));
  }

  /** States of all jobs, by id. */
  private async states(): Promise<Map<string, string>> {
    return new Map((await this.queue.listAll()).map(({ id, state }) => [id, state]));
  }

  private async inState(wanted: readonly string[]): Promise<string[]> {
    const states = await this.states();
    return this.jobs.flatMap(({ id }) => (wanted.includes(states.get(id) ?? '') ? [id] : []));
  }

  private readonly picked = (ids: readonly string[], at: number): string =>
    ids[at % Math.max(1, ids.length)] ?? this.jobs[0]?.id ?? '';

  private async claim({ count, size, wait, worker }: Act & { do: 'claim' }): Promise<number> {
    const before = await this.states();
    const chunks = { chunked: [{ type: 'chunked', size, wait_ms: wait }], singles: ['single'] };
    const taken = await this.queue.claim({ count, worker_id: worker, chunks, visibility_timeout_ms: LEASE_MS });
    const ids = taken.map(({ id }) => id);
    const isEnded = (state = '') => ['completed', 'discarded', 'cancelled'].includes(state);
    for (const group of ['a', 'b', 'c']) {
      const open = this.jobs.filter((job) => job.group === group && !isEnded(before.get(job.id))).map(({ id }) => id);
      const began = ids.filter((id) => open.includes(id));
      if (began.length === 0) continue;
      const running = open.filter((id) => before.get(id) === 'active');
      expect(running, `group ${group} has a call already`).toEqual([]);
      expect(began, `the jobs of group ${group} begin in their order`).toEqual(open.slice(0, began.length));
      expect(began.length, `a chunk of group ${group}`).toBeLessThanOrEqual(size);
    }
    return taken.length;
  }

  private async report({ jobs, together }: Act & { do: 'report' }): Promise<void> {
    const active = await this.inState(['active']);
    if (active.length === 0) return;
    const reports = jobs.map(
      ({ pick: at, how: as }) => ({ job_id: this.picked(active, at), ...outcome(as) }) as Report,
    );
    for (const group of together ? [reports] : reports.map((one) => [one])) {
      const answers = await this.queue.api.report(group);
      const defects = answers.filter((answer) => !answer.ok && answer.error.status >= 500);
      expect(defects, 'reports that could not be written').toEqual([]);
    }
  }

  /** With a handler that succeeds every job ends. */
  private async drain(): Promise<void> {
    for (let rounds = 0; ; rounds++) {
      for (const id of await this.inState(['active'])) await this.queue.api.report([{ job_id: id, kind: 'completed' }]);
      const open = await this.inState(['scheduled', 'available', 'retryable', 'active']);
      if (open.length === 0) return;
      expect(rounds, `${open.length} of ${this.jobs.length} jobs do not end`).toBeLessThan(this.jobs.length + 10);
      const taken = await this.claim({ do: 'claim', count: 4, size: 3, wait: 0, worker: WORKER });
      if (taken === 0) await this.queue.passTo(Date.now() + HOUR);
    }
  }
}

function outcome(as: How): object {
  const error = { message: 'in vain' };
  switch (as) {
    case 'completed':
      return { kind: 'completed' };
    case 'failed':
      return { kind: 'failed', error };
    case 'slowly':
      return { kind: 'failed', error: { ...error, retry_in_ms: 20 * SECOND } };
    case 'fatally':
      return { kind: 'failed', error: { ...error, retryable: false } };
    case 'requeued':
      return { kind: 'released', release: { attempt: 'used', error } };
    case 'returned':
      return { kind: 'released', release: { attempt: 'unused' } };
    case 'snoozed':
      return { kind: 'snoozed', snooze: { in: 5 * SECOND } };
  }
}

/** Histories that broke the order. */
const FOUND: [Act[], Partial<Sizes>][] = [
  // A later job of a chunk slept, or was given back with a pause, before an earlier one had to run again.
  [
    [
      { do: 'add', group: 'a', type: 'chunked', count: 3 },
      { do: 'claim', count: 1, size: 3, wait: 0, worker: WORKER },
      {
        do: 'report',
        jobs: [
          { pick: 1, how: 'requeued' },
          { pick: 0, how: 'requeued' },
          { pick: 2, how: 'snoozed' },
        ],
        together: false,
      },
    ],
    {},
  ],
  [
    [
      { do: 'add', group: 'a', type: 'chunked', count: 3 },
      { do: 'claim', count: 1, size: 3, wait: 0, worker: WORKER },
      {
        do: 'report',
        jobs: [
          { pick: 2, how: 'snoozed' },
          { pick: 0, how: 'failed' },
        ],
        together: false,
      },
    ],
    {},
  ],
  // A job came back while those behind it had filled what is gathered.
  [
    [
      { do: 'add', group: 'a', type: 'chunked', count: 2 },
      { do: 'claim', count: 1, size: 3, wait: 0, worker: WORKER },
      { do: 'add', group: 'a', type: 'chunked', count: 5 },
      { do: 'renew', pick: 0 },
      { do: 'claim', count: 1, size: 3, wait: 0, worker: WORKER },
      {
        do: 'report',
        jobs: [
          { pick: 0, how: 'failed' },
          { pick: 1, how: 'failed' },
        ],
        together: false,
      },
    ],
    { entries: 6, memory: 150, memoryEach: 150, holders: 0, chunkJobs: 5, chunkLanes: 2, quiet: 2 },
  ],
];

const RUNS = histories(300);

it(`${RUNS} histories of strict groups keep their order and come to their end`, { timeout: 600_000 }, async () => {
  const history = fc.tuple(fc.array(act, { minLength: 5, maxLength: 40 }), sizes);
  await fc.assert(
    fc.asyncProperty(history, ([acts, bounds]) => new Play(bounds).run(acts)),
    { numRuns: RUNS, seed: 20_261_127, examples: FOUND.map((found): [(typeof FOUND)[number]] => [found]) },
  );
});
