/** Every test meets the platform's bound of 2 MB for a value and a row, though the runtime beside it takes more. */
import { describe, expect, it } from 'vitest';
import { MAX_VALUE } from '../support/faults';
import { TestQueue } from '../support/queue';

/** A queue object with a table of its own, asked from inside. */
async function refuses(
  ...statements: [query: string, ...bindings: (string | number | ArrayBuffer)[]][]
): Promise<boolean> {
  const queue = new TestQueue();
  await queue.add();
  return queue.inside(({ sql }) => {
    sql.exec('CREATE TABLE held (key INTEGER PRIMARY KEY, data TEXT NOT NULL, more TEXT)');
    for (const [query, ...bindings] of statements.slice(0, -1)) sql.exec(query, ...bindings).toArray();
    const [query, ...bindings] = statements.at(-1) as [string];
    try {
      sql.exec(query, ...bindings).toArray();
      return false;
    } catch (error) {
      expect(String(error)).toContain('too big');
      return true;
    }
  });
}

const INSERT = 'INSERT INTO held (key, data, more) VALUES (?, ?, ?)';
const half = 'é'.repeat(MAX_VALUE / 4);

describe('storage in tests', () => {
  it('takes a value as large as may be, counted in bytes', async () => {
    expect(await refuses([INSERT, 1, half, 'x'])).toBe(false);
    expect(await refuses(['UPDATE held SET data = ? WHERE key = ?', half + half, 1])).toBe(false);
  });

  it('refuses a larger text, a larger blob, and a row whose members are too much together', async () => {
    expect(await refuses(['SELECT length(?)', `${half}${half}x`])).toBe(true);
    expect(await refuses(['SELECT length(?)', new ArrayBuffer(MAX_VALUE + 1)])).toBe(true);
    expect(await refuses([INSERT, 1, half, `${half}x`])).toBe(true);
  });

  it('refuses a row that grows too large, by a value or by what SQLite appends to one', async () => {
    expect(await refuses([INSERT, 1, half, 'x'], ['UPDATE held SET more = ? WHERE key = ?', `${half}x`, 1])).toBe(true);
    expect(
      await refuses([INSERT, 1, half, 'x'], ["UPDATE held SET data = data || ',' || ? WHERE key = ?", half, 1]),
    ).toBe(true);
    const grow =
      'INSERT INTO held (key, data) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET data = data || excluded.data';
    expect(await refuses([INSERT, 1, half, 'x'], [grow, 1, half])).toBe(true);
  });
});
