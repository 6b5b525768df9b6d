import { describe, expect, it } from 'vitest';
import { EventLog, type QueueEvent } from '../../src/durable/event-log';

const T0 = Date.UTC(2040, 0, 1);

/** A log in which this many events with this data were published. */
function logOf(count: number, data: Record<string, unknown>): EventLog {
  const log = new EventLog('q', 7);
  for (let n = 0; n < count; n++) {
    log.add('job.progress', `job-${n}`, T0 + n, { ...data } as never);
    log.publish();
  }
  return log;
}

const subjects = (events: readonly QueueEvent[]) => events.map(({ subject }) => subject);

const characters = (events: readonly QueueEvent[]) => JSON.stringify(events).length;

describe('the live feed', () => {
  it('keeps the newest thousand events while they are small', () => {
    const events = logOf(1500, { attempt: 1 }).read({ limit: 5000 });
    expect(events).toHaveLength(1000);
    expect(events[0]?.subject).toBe('job-500');
    expect(events.at(-1)?.subject).toBe('job-1499');
  });

  it('keeps two megabytes at most, in memory and in an answer: the oldest events go', () => {
    const long = 'é'.repeat(900);
    const log = logOf(1200, { message: long, other: long, third: long });
    const events = log.read({ limit: 5000 });
    expect(events.at(-1)?.subject).toBe('job-1199');
    expect(2 * characters(events)).toBeLessThan(2.1 * 1024 * 1024);
    expect((log as unknown as { ring: unknown[] }).ring.length).toBe(events.length);
  });

  it('reaches every listener, and one that fails affects no other', () => {
    const log = new EventLog('q', 7);
    const heard: string[] = [];
    log.listen(() => {
      throw new Error('a listener that cannot');
    });
    log.listen((events) => void heard.push(...events.map(({ subject }) => subject)));
    log.add('job.started', 'job-1', T0, {} as never);
    log.publish();
    log.add('job.started', 'job-2', T0, {} as never);
    log.publish();
    expect(heard).toEqual(['job-1', 'job-2']);
  });

  it('cuts long texts and leaves out large data, and says so', () => {
    const error = { code: 'E', type: 'T', message: '🙂'.repeat(4000) };
    const data = { items: Array(5000).fill('x') };
    const [event] = logOf(1, { attempt: 1, error, data, message: 'm'.repeat(5000), list: Array(5000).fill(1) }).read({
      limit: 1,
    });
    expect(Object.keys(event?.data ?? {}).sort()).toEqual(['attempt', 'error', 'message', 'truncated']);
    expect(event?.data).toMatchObject({ attempt: 1, truncated: true, error: { code: 'E', type: 'T' } });
    const { message } = (event as QueueEvent).data.error as { message: string };
    expect([message.length <= 1000, message.isWellFormed(), message.endsWith('🙂…')]).toEqual([true, true, true]);
    expect(event?.data.message).toBe(`${'m'.repeat(999)}…`);
  });

  it('leaves the data of the caller alone', () => {
    const data = { message: 'm'.repeat(5000) };
    const log = new EventLog('q', 7);
    log.add('job.progress', 'job', T0, data as never);
    expect(data).toEqual({ message: 'm'.repeat(5000) });
  });

  it('shows nothing of what was rolled back', () => {
    const log = logOf(2, {});
    log.add('job.failed', 'gone', T0 + 5, {} as never);
    log.rollback();
    log.publish();
    expect(subjects(log.read({ limit: 10 }))).toEqual(['job-0', 'job-1']);
  });

  it('reads from a time on', () => {
    expect(subjects(logOf(5, {}).read({ limit: 10, since: T0 + 3 }))).toEqual(['job-3', 'job-4']);
  });

  it('has ids that never go back, though a time may', () => {
    const log = new EventLog('q', 7);
    for (const time of [T0, T0 - 5000, T0 + 1]) log.add('cron.skipped', 'daily', time, {} as never);
    log.publish();
    const events = log.read({ limit: 10 });
    expect(events.map(({ time }) => time)).toEqual([T0, T0 - 5000, T0 + 1]);
    const ids = events.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted());
    expect(log.read({ after: ids[0] as string, limit: 10 })).toHaveLength(2);
  });

  it('knows since when nothing is missing: since its first event, or since the last one that went', () => {
    const log = logOf(1, {});
    const [first] = log.read({ limit: 1 });
    const start = log.position(T0 + 5);
    expect([log.isGapAfter(first?.id as string), log.isGapAfter(start)]).toEqual([false, false]);
    expect(new EventLog('q', 7).isGapAfter(start)).toBe(true);
    for (let n = 0; n < 1000; n++) log.add('job.enqueued', 'job', T0 + 10, {} as never);
    log.publish();
    expect([log.isGapAfter(first?.id as string), log.isGapAfter(start)]).toEqual([false, false]);
    log.add('job.enqueued', 'job', T0 + 11, {} as never);
    log.publish();
    expect([log.isGapAfter(first?.id as string), log.isGapAfter(start)]).toEqual([true, true]);
  });
});
