/** Inside the directory: what its verbs do not tell. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';

export const directory = () => env.DIRECTORY.getByName('directory');

/** The queues that have not confirmed the settings of all queues. */
export function untoldQueues(): Promise<string[]> {
  const query = `SELECT name FROM untold_queues UNION
    SELECT name FROM queues WHERE route > (SELECT told_to FROM queue_defaults) ORDER BY name`;
  return runInDurableObject(directory(), (_, { storage }) =>
    storage.sql
      .exec<{ name: string }>(query)
      .toArray()
      .map(({ name }) => name),
  );
}

/** Lists queues that need not exist, as many as that; their names are in the order of their numbers. {@link forgetMany} */
export function listMany(count: number): Promise<void> {
  const many = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1)
    INSERT INTO queues (route, name, created_at, ids_listed) SELECT i * 42000, printf('many-%06d', i), 0, 1 FROM n`;
  return runInDurableObject(directory(), async (instance, { storage }) => {
    (instance as unknown as { life: { tables: { create(): void } } }).life.tables.create();
    storage.sql.exec(many, count).toArray();
  });
}

/** Takes them off the list again: a reset would empty each. */
export function forgetMany(): Promise<void> {
  return runInDurableObject(directory(), async (_, { storage }) => {
    const known = storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'queues'").toArray();
    if (known.length > 0) storage.sql.exec("DELETE FROM queues WHERE name GLOB 'many-*'").toArray();
  });
}
