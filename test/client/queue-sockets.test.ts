/** The sockets of a worker to its queues share one budget. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Puller } from '../../src/client/pull';
import { QueueSockets } from '../../src/client/queue-sockets';
import { refusalOf, type SentReport } from '../../src/client/report';
import type { QueueSocket, QueueSocketEvents } from '../../src/client/worker-channel';

const never = (): Promise<never> => new Promise(() => undefined);

/** A queue that is told what it may send, and sends when it is told to. */
class FakeLine implements QueueSocket {
  isOpen = true;
  asked: number[] = [];
  reported: string[] = [];
  abandoned = false;
  ping: () => Promise<void> = async () => undefined;

  constructor(readonly events: QueueSocketEvents) {}

  send(count: number): void {
    this.events.jobs(Array(count).fill({}));
  }
  ready(count: number): void {
    this.asked.push(count);
  }
  async report(reports: readonly SentReport[], ready: number) {
    this.reported.push(...reports.map(({ jobId }) => jobId));
    if (ready > 0) this.asked.push(ready);
    return reports.map(({ jobId }) => ({ jobId, status: 'done' as const, state: 'completed' as const, attempt: 1 }));
  }
  async heartbeat() {
    return { state: 'running', jobsExtended: [], jobsCancelled: [], jobsLost: [] } as never;
  }
  enqueue = never;
  stream = never;
  pauses = 0;
  pause = async () => void this.pauses++;
  close(): void {
    this.isOpen = false;
  }
  abandon(): void {
    this.close();
    this.abandoned = true;
  }
}

const QUEUES = ['urgent', 'usual', 'bulk'];
let changes = 0;
let arrived = 0;

async function connected(queues = QUEUES, rooms: Record<string, number> = {}) {
  const lines: Record<string, FakeLine> = {};
  const byHttp: string[] = [];
  const worker = {
    queues,
    openLine: async (queue: string, _: unknown, events: QueueSocketEvents) => {
      lines[queue] = new FakeLine(events);
      return lines[queue];
    },
    sendReports: async (reports: readonly SentReport[]) => {
      byHttp.push(...reports.map(({ jobId }) => jobId));
      return reports.map(({ jobId }) => ({ jobId, status: 'done' as const, state: 'completed' as const, attempt: 1 }));
    },
  } as unknown as Puller;
  const host = {
    wanted: () => ({}),
    roomIn: (queue: string) => rooms[queue] ?? Number.POSITIVE_INFINITY,
    jobs: (jobs: unknown[]) => {
      arrived += jobs.length;
    },
    taken: () => undefined,
    directive: () => undefined,
    complain: () => undefined,
    changed: () => void changes++,
  };
  const all = new QueueSockets(worker, host, true);
  await all.connect();
  const line = (queue: string) => lines[queue] as FakeLine;
  const asked = () => queues.map((queue) => line(queue).asked.splice(0));
  return { all, line, asked, worker, byHttp };
}

const report = (jobId: string, queue: string): SentReport => ({ jobId, queue, isEnd: true, text: '{}' });

beforeEach(() => {
  vi.useFakeTimers();
  [changes, arrived] = [0, 0];
});
afterEach(() => {
  vi.useRealTimers();
});

describe('what queues may send', () => {
  it('is a share each, and for one after the other: those before it have nothing', async () => {
    const { all, asked } = await connected();
    all.fill(10);
    expect(asked()).toEqual([[4], [], []]);
    await vi.advanceTimersByTimeAsync(50);
    expect(changes).toBe(1);
    all.fill(10);
    expect(asked()).toEqual([[], [4], []]);
    await vi.advanceTimersByTimeAsync(50);
    all.fill(10);
    all.fill(10);
    expect(asked()).toEqual([[], [], [4]]);
  });

  it('is more for one that uses it up, until the worker is full', async () => {
    const { all, line, asked } = await connected(['urgent', 'bulk']);
    let room = 10;
    const steps: number[][][] = [];
    for (let step = 0; step < 6; step++) {
      all.fill(room);
      const now = asked();
      steps.push(now);
      const [sent = 0] = now[0] as number[];
      line('urgent').send(sent);
      room -= sent;
    }
    expect(steps).toEqual([
      [[5], []],
      [[3], []],
      [[1], []],
      [[1], []],
      [[], []],
      [[], []],
    ]);
    expect(arrived).toBe(10);
  });

  it('is nothing for the later ones while the first continues to send', async () => {
    const { all, line, asked } = await connected(['urgent', 'bulk']);
    for (let step = 0; step < 20; step++) {
      all.fill(2);
      expect(asked()).toEqual([[1], []]);
      await vi.advanceTimersByTimeAsync(40);
      line('urgent').send(1);
    }
    all.fill(2);
    await vi.advanceTimersByTimeAsync(50);
    all.fill(2);
    expect(asked()).toEqual([[1], [1]]);
  });

  it('is no more than may run of each, and one that is full holds up no other', async () => {
    const rooms = { urgent: 1 };
    const { all, line, asked } = await connected(['urgent', 'bulk'], rooms);
    all.fill(10);
    expect(asked()).toEqual([[1], []]);
    line('urgent').send(1);
    rooms.urgent = 0;
    all.fill(9);
    expect(asked()).toEqual([[], [5]]);
  });

  it('goes with the reports that make room for it, each to the queue of its job', async () => {
    const { all, line, asked, worker, byHttp } = await connected(['urgent', 'bulk']);
    all.fill(2);
    line('urgent').send(1);
    asked();
    const told = await all.report(
      worker,
      [report('a', 'urgent'), report('b', 'bulk'), report('c', 'gone'), report('d', 'urgent')],
      0,
    );
    expect(told.map(({ jobId }) => jobId)).toEqual(['a', 'b', 'c', 'd']);
    expect([line('urgent').reported, line('bulk').reported, byHttp]).toEqual([['a', 'd'], ['b'], ['c']]);
    expect(asked()).toEqual([[1], []]);
    expect(await all.report(worker, [report('e', 'urgent')], undefined)).toHaveLength(1);
    expect(asked()).toEqual([[], []]);
  });
});

describe('a queue that refuses what was said', () => {
  const unavailable = () => refusalOf({ status: 503, code: 'unavailable', message: 'not now', retryable: true });

  it('is sent its allowance again, after both have restarted', async () => {
    const { all, line, asked } = await connected(['urgent']);
    all.fill(10);
    expect(asked()).toEqual([[10]]);
    line('urgent').events.refused(unavailable());
    line('urgent').events.refused(unavailable());
    all.fill(10);
    expect([asked(), line('urgent').pauses]).toEqual([[[]], 0]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([line('urgent').pauses, changes]).toEqual([1, 1]);
    all.fill(10);
    expect(asked()).toEqual([[10]]);
  });

  it('is left when it does not answer that either', async () => {
    const { all, line } = await connected(['urgent']);
    line('urgent').pause = never;
    line('urgent').events.refused(unavailable());
    await vi.advanceTimersByTimeAsync(12_000);
    expect([line('urgent').abandoned, all.unconnected]).toEqual([true, ['urgent']]);
  });

  it('keeps the allowance of reports that it refused', async () => {
    const { all, line, asked, worker } = await connected(['urgent']);
    line('urgent').report = async () => {
      throw unavailable();
    };
    await expect(all.report(worker, [report('a', 'urgent')], 5)).rejects.toThrow('not now');
    all.fill(5);
    expect(asked()).toEqual([[5]]);
  });

  it('keeps its connection when it refuses a heartbeat', async () => {
    const { all, line, asked } = await connected(['urgent']);
    line('urgent').heartbeat = async () => {
      throw unavailable();
    };
    all.fill(5);
    expect(await all.heartbeat('{}')).toBeUndefined();
    all.fill(5);
    expect([line('urgent').abandoned, asked()]).toEqual([false, [[5]]]);
  });
});

it('a heartbeat goes over one, and the others must answer too', async () => {
  const { all, line } = await connected();
  line('bulk').ping = never;
  expect(await all.heartbeat('{}')).toMatchObject({ state: 'running' });
  await vi.advanceTimersByTimeAsync(9_000);
  expect(all.unconnected).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([line('usual').abandoned, line('bulk').abandoned, all.unconnected]).toEqual([false, true, ['bulk']]);
});

it.each([
  ['of a pool', ['pool:some', 'a']],
  ['of very many queues', Array.from({ length: 11 }, (_, n) => `q${n}`)],
])('a worker %s has none', async (_, queues) => {
  const { all } = await connected(queues);
  expect([all.isOpen, all.unconnected]).toEqual([false, []]);
});
