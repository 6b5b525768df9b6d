import { expect } from 'vitest';

/** These records as a queue keeps them: in the order in which they began, each with its time. */
export function onRecord(records: Record<string, object>): Record<string, object> {
  const entries = Object.entries(records).map(([name, record], i) => [name, stamped(record, i + 1)]);
  return Object.fromEntries(entries);
}

export const stamped = (record: object, seq: number): object => ({ ...record, seq, at: expect.any(Number) });
