/** Invariant "one bad job hurts no other": a record that cannot be read stops neither its queue nor its object. */

import { describe, expect, it, vi } from 'vitest';
import { unwrap } from '../../src/job/errors';
import { RANK_BIT } from '../../src/job/ids';
import type { Block } from '../../src/queue/store/block';
import type { QueueMemory } from '../../src/queue/store/memory';
import { clock, DAY, T0, until } from '../support/clock';
import { failAlways, failOnce } from '../support/faults';
import { type Inside, newJob, refusal, steady, TestQueue } from '../support/queue';
import { server } from '../support/server';

clock.startAtT0();

const BROKEN = ['{"type":', '', 'null', '5', '"text"', '[]'];

async function damage(queue: TestQueue, column: 'body' | 'history', id: string, value: string): Promise<void> {
  await queue.inside(({ sql, q }) => {
    const key = Number(BigInt(`0x${id.slice(24)}`) & ((1n << 42n) - 1n));
    if (column === 'body' && q.store.blocks.holds(key)) {
      damageInBlock(q, key, value);
      return;
    }
    const { rowsWritten } = sql.exec(`UPDATE jobs SET ${column} = ? WHERE key = ?`, value, key);
    expect(rowsWritten).toBeGreaterThan(0);
  });
}

/** Writes over the body of a job in a block. */
function damageInBlock(q: QueueMemory, key: number, value: string): void {
  q.store.blocks.row(key);
  const { last: block } = (q.store.blocks as unknown as { cache: { last: Block } }).cache;
  const { starts, lengths } = block as unknown as { starts: number[]; lengths: number[] };
  const offset = key - (block as Block).first;
  const length = lengths[offset] as number;
  const table = key < RANK_BIT ? 'blocks' : 'due_blocks';
  const write = `UPDATE ${table} SET data = substr(data, 1, ?) || ? || substr(data, ?) WHERE first = ?`;
  const start = starts[offset] as number;
  const { rowsWritten } = q.store.sql.exec(
    write,
    start,
    value.padEnd(length),
    start + length + 1,
    (block as Block).first,
  );
  expect(rowsWritten).toBe(1);
  q.load();
}

describe.each(BROKEN)('a body that reads %j', (body) => {
  it('makes its job a dead letter with a reason when its turn comes, and the rest continues', async () => {
    const queue = new TestQueue();
    const [bad, delayed, good] = (await queue.enqueue({}, { priority: 9 }, {})).map(({ id }) => id) as [
      string,
      string,
      string,
    ];
    await damage(queue, 'body', bad, body);
    await damage(queue, 'body', delayed, body);
    expect(await queue.claimAll()).toEqual([good]);
    for (const id of [bad, delayed]) {
      const { state, history } = await queue.get(id);
      expect({ state, dead: history.dead_letter }).toEqual({ state: 'discarded', dead: true });
      expect(history.errors).toMatchObject([{ code: 'unreadable_record' }]);
    }
    expect(await queue.counts()).toEqual({ active: 1, discarded: 2 });
    expect(await queue.stats()).toMatchObject({ dead: 2 });
  });

  it('can still be listed, cancelled, or completed when it broke while the job ran', async () => {
    const queue = new TestQueue();
    const [first, second] = (await queue.enqueue({}, {})).map(({ id }) => id) as [string, string];
    await queue.claim();
    for (const id of [first, second]) await damage(queue, 'body', id, body);
    expect((await queue.listAll()).map(({ id }) => id)).toEqual([second, first]);
    const page = await server.ok(200, 'GET', `/ojs/v1/jobs?queue=${queue.name}`);
    expect(page.jobs).toMatchObject([
      { id: second, type: 'test.job', args: [] },
      { id: first, state: 'active' },
    ]);
    expect(await queue.cancel(second)).toMatchObject({ state: 'cancelled' });
    expect(await queue.ack(first)).toMatchObject({ state: 'completed' });
    expect(await queue.counts()).toEqual({ completed: 1, cancelled: 1 });
  });
});

describe.each([...BROKEN, '{"errors":5}', '{"errors":[null]}', '{"error":7}'])('a history that reads %j', (history) => {
  it('counts as empty: the job is claimed, fails and is retried like any other', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(3), expiresAt: T0 + DAY });
    await damage(queue, 'history', id, history);
    expect(await queue.claim()).toMatchObject([{ id, attempt: 1 }]);
    await damage(queue, 'history', id, history);
    expect(await queue.nack(id)).toMatchObject({ state: 'retryable', history: { errors: [{ attempt: 1 }] } });
  });

  it('does not keep the lease of its job, or of another, from running out', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({ expiresAt: T0 + DAY }, {})).map(({ id }) => id) as [string, string];
    await queue.claim({ count: 2, visibility_timeout_ms: 1000 });
    await damage(queue, 'history', ids[0], history);
    clock.set(T0 + 1000);
    expect(await queue.counts()).toEqual({ available: 2 });
    expect(await queue.claimAll()).toEqual(ids);
  });
});

describe('an attempt that cannot be ended', () => {
  it('becomes a dead letter, and the leases beside it run out as they should', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({}, {}, {})).map(({ id }) => id) as [string, string, string];
    await queue.claim({ count: 3, visibility_timeout_ms: 1000 });
    await queue.inside(({ q }) => {
      vi.spyOn(q.config, 'policyFor').mockImplementationOnce(() => {
        throw new TypeError('a defect that this job brings out');
      });
    });
    clock.set(T0 + 1000);
    const states = await Promise.all(ids.map((id) => queue.state(id)));
    expect(states.sort()).toEqual(['available', 'available', 'discarded']);
    expect(await queue.stats()).toMatchObject({ dead: 1, counts: { available: 2, discarded: 1 } });
    await queue.evict();
    expect(await queue.stats()).toMatchObject({ dead: 1, counts: { available: 2, discarded: 1 } });
  });

  const failures: [string, (inside: Inside) => unknown][] = [
    ['before its row is written', ({ sql }) => failOnce(sql, /^INSERT INTO jobs/)],
    [
      'after its row was written',
      ({ q }) =>
        vi.spyOn(q.store.tally, 'left').mockImplementationOnce(() => {
          throw new TypeError('a defect that this job brings out');
        }),
    ],
  ];

  it.each(failures)('has used up its claim: no later run has its delivery id, when it fails %s', async (_, fails) => {
    const queue = new TestQueue();
    const [id, other] = (await queue.enqueue({}, {})).map((job) => job.id) as [string, string];
    const [first] = await queue.claim({ count: 2, visibility_timeout_ms: 1000 });
    await queue.inside(fails);
    clock.set(T0 + 1000);
    expect(await queue.get(id)).toMatchObject({ state: 'discarded', attempt: 1 });
    expect(await queue.state(other)).toBe('available');
    await queue.evict();
    await queue.redrive(id);
    expect(await queue.counts()).toEqual({ available: 2 });
    const again = (await queue.claim({ count: 2 })).find((job) => job.id === id);
    expect(again?.delivery_id).toBeDefined();
    expect(again?.delivery_id).not.toBe(first?.delivery_id);
    const late = { job_id: id, delivery_id: first?.delivery_id as string };
    expect(refusal(await queue.api.settle({ kind: 'completed', ...late }))).toMatchObject({ status: 409 });
    expect(await queue.state(id)).toBe('active');
  });

  it('was not reported: a late report is refused', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    const [job] = await queue.claim({ visibility_timeout_ms: 1000 });
    await queue.inside(({ sql }) => failOnce(sql, /^INSERT INTO jobs/));
    clock.set(T0 + 1000);
    expect(await queue.state(id)).toBe('discarded');
    const release = { attempt: 'used', error: {} } as const;
    const late = { kind: 'released', release, job_id: id, delivery_id: job?.delivery_id as string } as const;
    expect(refusal(await queue.api.settle(late))).toMatchObject({ status: 409 });
    expect(await queue.state(id)).toBe('discarded');
  });

  it('stays as it is where it cannot become a dead letter either, and stops no other job', async () => {
    const queue = new TestQueue();
    const [id, other] = (await queue.enqueue({}, {})).map((job) => job.id) as [string, string];
    await queue.claim({ visibility_timeout_ms: 1000 });
    const heal = await queue.inside(({ sql }) => failAlways(sql, /^INSERT INTO jobs/));
    clock.set(T0 + 1000);
    expect(await queue.state(id)).toBe('active');
    expect((await queue.claim()).map((job) => job.id)).toEqual([other]);
    heal();
    await queue.passTo(T0 + 11_000);
    expect(await queue.get(id)).toMatchObject({ state: 'available', attempt: 1 });
  });
});

describe.each(['{', '', '[1', '{"state":1'])('a checkpoint that reads %j', (data) => {
  it('counts as none: its job and those claimed with it run, and it can be saved again', async () => {
    const queue = new TestQueue();
    const ids = [await queue.add(), await queue.add()] as [string, string];
    await queue.inside(({ q }) => {
      q.store.checkpoints.saveSteps(1, '{"step":{"result":1}}', T0);
      q.store.checkpoints.save(1, '{"state":1}', T0);
      q.store.sql.exec('UPDATE checkpoints SET data = ?', data).toArray();
    });
    expect((await queue.claim({ count: 2 })).map(({ id, checkpoint, steps }) => ({ id, checkpoint, steps }))).toEqual(
      ids.map((id) => ({ id, checkpoint: undefined, steps: undefined })),
    );
    await queue.inside(({ q }) => {
      expect(q.store.checkpoints.read(1)).toBeUndefined();
      q.store.checkpoints.saveSteps(1, '{"step":{"result":2}}', T0);
      q.store.checkpoints.save(1, '{"state":2}', T0);
      expect(q.store.checkpoints.read(1)?.content).toBe('{"state":2}');
      expect(q.store.checkpoints.steps(1)).toBe('{"step":{"result":2}}');
    });
  });
});

describe('a lease that cannot be read', () => {
  it.each(['{', 'null', '7', '{}', '{"s":1,"h":2,"q":3,"e":5}', '{"s":1,"h":2,"q":3,"e":[7]}'])(
    'as %j gives its jobs back, even those the line was taken past, and spares the other leases',
    async (data) => {
      const queue = new TestQueue();
      const ids = (await queue.enqueue({}, {}, {}, {})).map(({ id }) => id) as [string, string, string, string];
      await queue.claim({ count: 2, worker_id: 'w1' });
      await queue.claim({ worker_id: 'w2' });
      await queue.inside(({ sql }) => void sql.exec('UPDATE leases SET data = ? WHERE id = 1', data));
      await queue.evict();
      expect(await queue.get(ids[2])).toMatchObject({ state: 'active', worker_id: 'w2' });
      expect(await queue.counts()).toEqual({ available: 3, active: 1 });
      expect(await queue.claimAll()).toEqual([ids[0], ids[1], ids[3]]);
    },
  );
});

describe('a chunk of the archive that cannot be read', () => {
  it('hides no other completed job, and is pruned when its time has come', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({}, {}, {})).map(({ id }) => id) as [string, string, string];
    await queue.claim({ count: 3 });
    for (const id of ids) {
      await queue.ack(id, { result: JSON.stringify('x'.repeat(30_000)) });
    }
    await queue.inside(({ sql }) => void sql.exec("UPDATE archive SET data = '[{' WHERE chunk = 2"));
    expect(await queue.state(ids[0])).toBe('completed');
    expect(await queue.state(ids[1])).toBe('404');
    expect((await queue.listAll()).map(({ id }) => id)).toEqual([ids[2], ids[0]]);
    clock.set(T0 + 8 * DAY);
    await queue.alarm();
    expect(await queue.rows('SELECT chunk FROM archive')).toEqual([]);
  });
});

describe('a checkpoint that cannot be read', () => {
  it.each(['{', '', 'null', '7', '[]'])('as %j counts as none, and keeps no job from being claimed', async (data) => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({ retry: steady(5, 0) }, {})).map(({ id }) => id) as [string, string];
    await queue.claim({ count: 1 });
    const content = JSON.stringify({ state: { at: 7 } });
    unwrap(await queue.api.saveCheckpoint({ job_id: ids[0], content }));
    unwrap(await queue.api.recordStep({ job_id: ids[0], name: 'one', record: '{"result":1}' }));
    await queue.nack(ids[0]);
    await queue.inside(({ sql }) => void sql.exec('UPDATE checkpoints SET data = ?', data));
    await queue.evict();
    const [job] = (await queue.claim({ count: 2 })).filter(({ id }) => id === ids[0]);
    expect(job).toMatchObject({ id: ids[0], attempt: 2 });
    expect(job?.checkpoint).toBeUndefined();
    expect(await queue.api.checkpoint(ids[0])).toEqual({ ok: true, value: null });
    unwrap(await queue.api.recordStep({ job_id: ids[0], name: 'two', record: '{"result":2}' }));
    unwrap(await queue.api.saveCheckpoint({ job_id: ids[0], content }));
    expect(unwrap(await queue.api.checkpoint(ids[0]))).toMatchObject({ content: '{"state":{"at":7}}' });
    expect(unwrap(await queue.api.steps(ids[0]))).toContain('two');
    await queue.ack(ids[0]);
  });
});

describe('what is gone of a block', () => {
  it.each(['[0,1', '0 1', '7', 'null'])(
    'as %j keeps no queue from waking, and brings nothing back it names',
    async (gone) => {
      const queue = new TestQueue();
      await queue.api.configure({ retention: { completed: 0 } });
      const ids = (await queue.enqueue(...Array(9).fill({}))).map(({ id }) => id);
      for (const { id } of await queue.claim({ count: 2 })) await queue.ack(id);
      await queue.inside(({ sql }) => void sql.exec('UPDATE blocks SET gone = ?', gone));
      await queue.evict();
      const claimed = await queue.claimAll();
      expect(claimed).toContain(ids[8]);
      if (gone.includes('1')) expect(claimed).toEqual(ids.slice(2));
    },
  );
});

describe('a share of a batch that cannot be read', () => {
  it.each(['{', '7', 'null'])('as %j keeps no queue from waking, claiming or counting', async (data) => {
    const queue = new TestQueue();
    await queue.add();
    await queue.inside(({ sql }) => {
      const insert = "INSERT INTO outbox (kind, address, number, data, due_at) VALUES ('share', 'b', 0, ?, ?)";
      sql.exec(insert, data, T0 + DAY);
    });
    await queue.evict();
    await queue.api.configure({ max_depth: 1, max_bytes: 1_000_000 });
    expect(refusal(await queue.api.enqueue([newJob()]))).toMatchObject({ details: { depth: 1 } });
    expect(await queue.claim()).toHaveLength(1);
  });
});

describe('jobs whose chunk of the archive cannot be read', () => {
  type Arrive = (queue: TestQueue) => Promise<string[]>;
  const places: [string, Arrive][] = [
    ['the line', async (queue) => (await queue.enqueue({}, {}, {}, {}, {})).map(({ id }) => id)],
    [
      'the due index',
      async (queue) => {
        const ids = (await queue.enqueue(...Array(5).fill({ scheduledAt: T0 + 5 }))).map(({ id }) => id);
        clock.set(T0 + 5);
        return ids;
      },
    ],
  ];
  /** The first four completed together, the last one waits. @returns ids */
  async function four(queue: TestQueue, arrive: Arrive): Promise<string[]> {
    await queue.api.configure({ retention: { completed: DAY } });
    const ids = await arrive(queue);
    await queue.claim({ count: 4 });
    const acks = ids.slice(0, 4).map((job_id) => ({ kind: 'completed' as const, job_id }));
    await queue.api.report(acks);
    return ids;
  }
  const damaged = ["'[{'", "'7'", "'{}'", "'[null,null,null,null]'", 'substr(data, 1, length(data) - 3)'];

  describe.each(places)('in %s', (_, arrive) => {
    it.each(damaged)('are over and never run again, when it is %s: those beside them wait as before', async (data) => {
      const queue = new TestQueue();
      const ids = await four(queue, arrive);
      await queue.inside(({ sql }) => void sql.exec(`UPDATE archive SET data = ${data}`));
      await queue.evict();
      expect(await queue.counts()).toEqual({ available: 1, completed: 4 });
      expect((await queue.listAll()).map(({ id }) => id).slice(0, 1)).toEqual([ids[4]]);
      await queue.api.configure({ max_depth: 2 });
      await queue.add({ priority: -1 });
      expect(refusal(await queue.api.enqueue([newJob()]))).toMatchObject({ details: { depth: 2 } });
      expect((await queue.claimAll()).slice(0, 1)).toEqual([ids[4]]);
      // Nor when the chunk is pruned, which was all that said so.
      await queue.ack(ids[4] as string);
      await queue.passTo(T0 + 3 * DAY);
      expect(await queue.rows('SELECT chunk FROM archive')).toEqual([]);
      await queue.evict();
      expect(await queue.claimAll()).not.toContain(ids[0]);
      for (const id of ids) expect(await queue.state(id)).toBe('404');
    });

    it('are reported to an operator, once in a life', async () => {
      const queue = new TestQueue();
      await four(queue, arrive);
      await queue.inside(({ sql }) => void sql.exec("UPDATE archive SET data = '[{'"));
      await queue.evict();
      const said = vi.spyOn(console, 'error');
      await queue.counts();
      await queue.claimAll();
      const told = (await queue.api.events({ types: ['queue.archive_damaged'], limit: 10 })).map((event) => event.data);
      expect(told).toEqual([{ chunk: 1, jobs: 4, numbers: '1-4' }]);
      const lines = said.mock.calls.map(([line]) => String(line)).filter((line) => line.includes(queue.name));
      expect(lines).toEqual([expect.stringContaining('cannot read 4 completed jobs')]);
    });
  });

  it('spare others between them, as long as the text still says which they are', async () => {
    const queue = new TestQueue();
    const jobs = [{ type: 'a' }, { type: 'b' }, { type: 'a' }, { type: 'b' }, { type: 'a' }];
    const ids = (await queue.enqueue(...jobs)).map(({ id }) => id);
    await queue.claim({ count: 5, types: ['a'] });
    const [running] = await queue.claim({ count: 1, types: ['b'] });
    expect(running?.id).toBe(ids[1]);
    const acks = [0, 2, 4].map((n) => ({ kind: 'completed' as const, job_id: ids[n] as string }));
    await queue.api.report(acks);
    await queue.inside(({ sql }) => void sql.exec('UPDATE archive SET data = substr(data, 1, length(data) - 3)'));
    await queue.evict();
    expect(await queue.counts()).toEqual({ active: 1, available: 1, completed: 3 });
    await queue.ack(ids[1] as string);
    expect(await queue.claimAll()).toEqual([ids[3]]);
  });

  it('do not come back out of the row of their lease', async () => {
    const queue = new TestQueue();
    await queue.api.pause();
    await queue.api.resume();
    const id = await queue.addTaken({}, { visibility_timeout_ms: 1000 });
    await queue.ack(id);
    await queue.inside(({ sql }) => void sql.exec("UPDATE archive SET data = '[{'"));
    await queue.evict();
    clock.set(T0 + 10_000);
    expect(await queue.counts()).toEqual({ completed: 1 });
    expect(await queue.claimAll()).toEqual([]);
  });
});

describe('the alarm', () => {
  it('does its other duties when one of them fails, does not throw, and comes again', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ type: 'work.do', scheduledAt: T0 + 1000 });
    await queue.inside(({ sql }) => {
      const { exec } = sql;
      sql.exec = ((query: string, ...bindings: unknown[]) => {
        if (/SELECT chunk, ended_at FROM archive/.test(query)) throw new Error('the archive is damaged');
        return exec.call(sql, query, ...bindings);
      }) as SqlStorage['exec'];
    });
    clock.set(T0 + 1000);
    expect(await queue.alarm()).toBe(true);
    await until(async () => (await queue.state(id)) === 'completed', 'the push');
    expect(await queue.armedAt()).toBeLessThanOrEqual(T0 + 2000);
  });

  it('runs with a broken row in every place, and the jobs beside them continue', async () => {
    const queue = new TestQueue();
    const job = { type: 'work.do', scheduledAt: T0 + 1 };
    // What expires has a row of its own; the others are a block.
    const jobs = await queue.enqueue({ ...job, expiresAt: T0 + DAY }, job, job);
    const [bad, badInBlock, good] = jobs.map(({ id }) => id) as [string, string, string];
    await damage(queue, 'body', bad, '{');
    await damage(queue, 'history', bad, '7');
    await damage(queue, 'body', badInBlock, '{');
    clock.set(T0 + 1);
    await queue.alarm();
    await until(async () => (await queue.state(good)) === 'completed', 'the good job');
    expect(await queue.state(bad)).toBe('discarded');
    expect(await queue.state(badInBlock)).toBe('discarded');
  });
});

describe('jobs that expire', () => {
  it('are all discarded, however many that still run have expired before them', async () => {
    const queue = new TestQueue();
    for (let n = 0; n < 6; n++) await queue.enqueue(...Array(100).fill({ expiresAt: T0 + 1000 }));
    await queue.claimAll();
    await queue.enqueue(...Array(700).fill({ expiresAt: T0 + 2000 }));
    clock.set(T0 + 3000);
    expect(await queue.counts()).toEqual({ active: 600, discarded: 700 });
    expect(await queue.claim()).toEqual([]);
  });
});
