/** Before all tests of a Worker: its objects meet the limits of the platform, which the runtime on a developer's machine has not. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeAll } from 'vitest';
import { refuseLargeValues } from './faults';

beforeAll(async () => {
  // All storage of this isolate has the prototype of any.
  const any = env.UNIQUE_LOCKS.getByName('any');
  await runInDurableObject(any, (_, { storage }) => refuseLargeValues(Object.getPrototypeOf(storage.sql)));
});
