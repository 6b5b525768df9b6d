/** How the log of what operators have changed is bounded. */
import { runInDurableObject } from 'cloudflare:test';
import { expect, it } from 'vitest';
import { AuditLog } from '../../src/directory/audit';
import { DIRECTORY, Schema } from '../../src/durable/schema';
import type { AuditEntry } from '../../src/rpc/audit';
import { directory } from '../support/directory';
import { countRows, startCounting } from '../support/rows';
import { server } from '../support/server';

server.emptyBeforeEach();

const DAY = 86_400_000;
const T0 = Date.UTC(2026, 0, 1);

const entry = (at: number, target = 'q', name = 'Olga'): AuditEntry => ({
  at,
  actor: { name, role: 'operator', key_hint: 'abcdef' },
  action: 'queue.pause',
  target,
  queue: target,
  job: null,
  filter: null,
  change: null,
  count: null,
  operation_id: null,
  status: 200,
  request_id: 'r',
  reason: null,
});

/** Runs with a log in an object's storage. */
const withLog = <T>(
  bounds: { rows: number; bytes: number; ageMs: number },
  use: (log: () => AuditLog, storage: DurableObjectStorage) => T,
) =>
  runInDurableObject(directory(), (_, { storage }) => {
    const tables = new Schema(storage, DIRECTORY, 'test');
    tables.create();
    // Each time as if the object had just started.
    return use(() => new AuditLog(tables, bounds), storage);
  });

const shown = (log: AuditLog, now: number) =>
  log.page({ offset: 0, limit: 500 }, now).entries.map(({ target }) => target);

it('the oldest entries make room when there are too many', async () => {
  await withLog({ rows: 3, bytes: 1e6, ageMs: 90 * DAY }, (fresh, storage) => {
    const log = fresh();
    for (let i = 0; i < 5; i++) log.record(entry(T0 + i, `q${i}`));
    expect(shown(log, T0 + 5)).toEqual(['q4', 'q3', 'q2']);
    const restarted = fresh();
    startCounting(storage);
    restarted.record(entry(T0 + 5, 'q5'));
    expect(countRows(storage).written).toBe(2);
    expect(shown(restarted, T0 + 6)).toEqual(['q5', 'q4', 'q3']);
    // Numbers go on: none is given twice.
    expect(restarted.page({ offset: 0, limit: 1 }, T0).entries[0]?.id).toBe(6);
  });
});

it('the oldest audit entries are removed when they take too many bytes', async () => {
  const one = new TextEncoder().encode(JSON.stringify(entry(T0, 'ü0'))).byteLength;
  await withLog({ rows: 100, bytes: 3 * one, ageMs: 90 * DAY }, (fresh) => {
    for (let i = 0; i < 5; i++) fresh().record(entry(T0 + i, `ü${i}`));
    expect(shown(fresh(), T0 + 5)).toEqual(['ü4', 'ü3', 'ü2']);
  });
});

it.each([
  ['too many', { rows: 10, bytes: 1e6 }],
  ['too large', { rows: 100, bytes: 10 * JSON.stringify(entry(T0, 'q00')).length }],
])('the oldest entries of the key with the most are removed when they are %s, however late', async (_, bound) => {
  await withLog({ ...bound, ageMs: 90 * DAY }, (fresh) => {
    const log = fresh();
    for (let i = 0; i < 3; i++) log.record(entry(T0 + i, `o0${i}`));
    for (let i = 0; i < 40; i++) (i === 20 ? fresh() : log).record(entry(T0 + 10 + i, `j${10 + i}`, 'Junk'));
    log.forget();
    expect(shown(log, T0 + 99)).toEqual(['j49', 'j48', 'j47', 'j46', 'j45', 'j44', 'j43', 'o02', 'o01', 'o00']);
    // Where both have as much, each makes room for itself.
    for (let i = 0; i < 40; i++) log.record(entry(T0 + 100 + i, `o${10 + i}`));
    const names = shown(log, T0 + 199).map((target) => target?.[0]);
    expect(names.filter((name) => name === 'j')).toHaveLength(5);
  });
});

it('audit entries that are too old are not shown, and removed in bounded parts', async () => {
  await withLog({ rows: 1_000, bytes: 1e6, ageMs: 90 * DAY }, (fresh, storage) => {
    const log = fresh();
    for (let i = 0; i < 120; i++) log.record(entry(T0 + i));
    log.record(entry(T0 + 60 * DAY, 'young'));
    const now = T0 + 91 * DAY;
    const left = () => storage.sql.exec<{ n: number }>('SELECT count(*) AS n FROM audit').one().n;
    expect(left()).toBe(121);
    startCounting(storage);
    expect(shown(log, now)).toEqual(['young']);
    expect(countRows(storage).written).toBe(50);
    log.record(entry(now, 'new'));
    expect(left()).toBe(22);
    fresh().prune(now);
    expect(left()).toBe(2);
    startCounting(storage);
    fresh().prune(now);
    expect(countRows(storage).written).toBe(0);
  });
});
