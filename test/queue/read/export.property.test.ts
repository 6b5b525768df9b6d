/**
 * A queue is exported while its jobs come, run, fail and end. Each job that was accepted before is in the file once; no
 * job that came later is.
 */
import { describe, expect, it } from 'vitest';
import type { StoredJob } from '../../../src/export/stored-job';
import { unwrap } from '../../../src/job/errors';
import type { JobState } from '../../../src/job/states';
import type { ExportPage } from '../../../src/rpc/export';
import { Random } from '../../fuzz/random';
import { clock, MINUTE, T0 } from '../../support/clock';
import { type JobChange, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

const STATES: Record<StoredJob['state'], readonly JobState[]> = {
  waiting: ['scheduled', 'available', 'active', 'retryable'],
  pending: ['pending'],
  completed: ['completed'],
  cancelled: ['cancelled'],
  discarded: ['discarded'],
  dead: ['discarded'],
};

/** A queue with a life of its own. */
class Busy {
  readonly queue = new TestQueue();
  /** The jobs that were accepted, and the ones that run. */
  readonly ids: string[] = [];
  private readonly running = new Set<string>();

  constructor(private readonly random: Random) {}

  private any(): string | undefined {
    return this.ids[this.random.below(Math.max(1, this.ids.length))];
  }

  private job(): JobChange {
    const retry = { ...steady(2, MINUTE), ...(this.random.below(2) === 0 && { on_exhaustion: 'dead_letter' }) };
    switch (this.random.below(7)) {
      case 0:
        return { scheduledAt: Date.now() + MINUTE * this.random.below(3) };
      case 1:
        return { priority: this.random.below(5) };
      case 2:
        return { pending: true };
      case 3:
        return { body: { group: 'acme' }, group: 'acme' };
      default:
        return { retry };
    }
  }

  /** One of the things that happen to a queue. */
  async live(): Promise<void> {
    const { queue, running } = this;
    const [some = ''] = [...running].slice(this.random.below(Math.max(1, running.size)));
    switch (this.random.below(9)) {
      case 0:
      case 1:
        this.ids.push(
          ...(await queue.enqueue(...Array.from({ length: 1 + this.random.below(6) }, () => this.job()))).map(
            ({ id }) => id,
          ),
        );
        return;
      case 2:
      case 3:
        for (const { id } of await queue.claim({ count: 1 + this.random.below(8) })) running.add(id);
        return;
      case 4:
        if (running.delete(some)) await queue.ack(some);
        return;
      case 5:
        if (running.delete(some)) await queue.nack(some);
        return;
      case 6: {
        const id = this.any();
        if (id !== undefined) await queue.api.cancel(id);
        if (id !== undefined) running.delete(id);
        return;
      }
      case 7:
        clock.advance(this.random.below(3) * MINUTE);
        return;
      default:
        if (this.random.below(4) === 0) await queue.evict();
    }
  }
}

describe('an export of a queue at work', () => {
  it.each(Array.from({ length: 12 }, (_, seed) => seed))(
    'has each job that was accepted before it once, and no later one (seed %i)',
    async (seed) => {
      const random = new Random(seed);
      const busy = new Busy(random);
      await busy.queue.add();
      for (let n = 0; n < 60; n++) await busy.live();
      const before = new Set((await busy.queue.listAll()).map(({ id }) => id));
      const start = unwrap(await busy.queue.api.beginExport());
      if (!start) throw new Error('The queue does not exist.');
      const seen: string[] = [];
      for (let after: number | undefined = 0; after !== undefined; ) {
        const request = { after, until: start.until, ended: true, limit: 1 + random.below(7) };
        const page: ExportPage = unwrap(await busy.queue.api.exportPage(request));
        for (const line of page.lines.split('\n').slice(0, -1)) {
          const { job } = JSON.parse(line) as { job: StoredJob };
          // As it was when it was read.
          expect(STATES[job.state]).toContain(await busy.queue.state(job.id));
          seen.push(job.id);
        }
        after = page.next;
        for (let n = random.below(4); n > 0; n--) await busy.live();
      }
      expect(seen.toSorted()).toEqual([...before].toSorted());
      expect(seen).toEqual(
        (await busy.queue.listAll())
          .map(({ id }) => id)
          .filter((id) => before.has(id))
          .toReversed(),
      );
    },
  );

  it('reads a bounded number of rows for a page, however many jobs there are', async () => {
    const queue = new TestQueue();
    for (let n = 0; n < 12; n++) await queue.enqueue(...Array.from({ length: 1000 }, () => ({})));
    const page = async (after: number) =>
      unwrap(await queue.api.exportPage({ after, until: 12_000, ended: true, limit: 500 }));
    await page(0);
    const first = await queue.rowsRead(() => page(0));
    expect(await queue.rowsRead(() => page(11_000))).toBeLessThanOrEqual(first + 10);
    expect(first).toBeLessThan(60);
  });
});

describe('an export of completed jobs', () => {
  it('has those of many small chunks, and large ones, in pages of bounded size', async () => {
    const queue = new TestQueue();
    clock.set(T0);
    const body = { args: ['x'.repeat(100_000)] };
    for (let n = 0; n < 40; n++) await queue.enqueue(n % 3 === 0 ? { body } : {});
    for (const id of await queue.claimAll()) await queue.ack(id);
    const ids: string[] = [];
    const sizes: number[] = [];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page: ExportPage = unwrap(await queue.api.exportPage({ after, until: 40, ended: true }));
      sizes.push(page.lines.length);
      ids.push(...[...page.lines.matchAll(/"id":"([^"]+)"/g)].map(([, id = '']) => id));
      after = page.next;
    }
    expect(ids).toEqual((await queue.listAll()).map(({ id }) => id).toReversed());
    expect(Math.max(...sizes)).toBeLessThan(1.2 * 1024 * 1024);
    expect(sizes.length).toBeGreaterThan(1);
  });
});
