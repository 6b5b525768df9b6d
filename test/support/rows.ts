/** Counts what SQLite reads and writes, as the platform bills it. */
import { runInDurableObject } from 'cloudflare:test';

export interface RowCount {
  read: number;
  written: number;
  /** Alarms set; each is billed as a written row and included in `written`. */
  alarms: number;
}

interface Counted {
  cursors: { rowsRead: number; rowsWritten: number }[];
  alarms: number;
  stop(): void;
}

const counting = new WeakMap<DurableObjectStorage, Counted>();

/** Starts counting in this storage, from zero. Call it inside the object. */
export function startCounting(storage: DurableObjectStorage): void {
  counting.get(storage)?.stop();
  const { sql } = storage;
  const exec = sql.exec;
  const setAlarm = storage.setAlarm;
  const counted: Counted = {
    cursors: [],
    alarms: 0,
    stop: () => {
      sql.exec = exec;
      storage.setAlarm = setAlarm;
      counting.delete(storage);
    },
  };
  sql.exec = ((query: string, ...bindings: unknown[]) => {
    const cursor = exec.call(sql, query, ...bindings);
    counted.cursors.push(cursor);
    return cursor;
  }) as SqlStorage['exec'];
  storage.setAlarm = (time, options) => {
    counted.alarms++;
    return setAlarm.call(storage, time, options);
  };
  counting.set(storage, counted);
}

/** What was counted since {@link startCounting} or the last call. */
export function countRows(storage: DurableObjectStorage): RowCount {
  const counted = counting.get(storage);
  if (!counted) throw new Error('counting was not started in this storage');
  const count = { read: 0, written: counted.alarms, alarms: counted.alarms };
  for (const { rowsRead, rowsWritten } of counted.cursors) {
    count.read += rowsRead;
    count.written += rowsWritten;
  }
  counted.cursors = [];
  counted.alarms = 0;
  return count;
}

/** What an object reads and writes while `act` runs. */
export async function rowsWhile(
  stub: DurableObjectStub<Rpc.DurableObjectBranded & DurableObject>,
  act: () => Promise<unknown>,
): Promise<RowCount> {
  await runInDurableObject(stub, (_, { storage }) => startCounting(storage));
  try {
    await act();
    return await runInDurableObject(stub, (_, { storage }) => countRows(storage));
  } finally {
    await runInDurableObject(stub, (_, { storage }) => counting.get(storage)?.stop());
  }
}

/** The rows that an object writes while `act` runs, its alarms left out. */
export async function rowsWritten(...args: Parameters<typeof rowsWhile>): Promise<number> {
  const { written, alarms } = await rowsWhile(...args);
  return written - alarms;
}
