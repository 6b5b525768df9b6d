/** Everything that a queue says of its jobs, to see that it says the same however they are stored. */
import type { JobFilter } from '../../src/job/filter';
import { decodeId } from '../../src/job/ids';
import { JOB_STATES } from '../../src/job/states';
import { read } from '../../src/metrics/meter';
import { oldestAvailable, priorities, upcoming } from '../../src/queue/read/stats';
import { countAhead } from '../../src/queue/store/jobs-ahead';
import { nextDue } from '../../src/queue/store/ranks';
import { rowByKey } from '../../src/queue/store/row-lookup';
import { Scan } from '../../src/queue/store/scan';
import { SORT_KEYS } from '../../src/rpc/operations';
import { T0 } from './clock';
import type { TestQueue } from './queue';

/** Everything that can be asked about a queue whose jobs were made in this order. */
export async function answers(queue: TestQueue, ids: readonly string[]): Promise<string> {
  const filters: JobFilter[] = [
    ...JOB_STATES.map((state) => ({ states: [state] })),
    { states: ['scheduled', 'available', 'active'] },
    { types: ['b*'], priority: { min: 0, max: 0 } },
    { scheduled: { min: T0 + 1, max: T0 + 1500 } },
    { enqueued: { min: T0 + 1000 } },
    { attempt: { min: 1 } },
    { words: ['needle'] },
    { ids: ids.slice(2, 9) },
  ];
  const asked = [
    await queue.stats(),
    await queue.listAll(7),
    ...(await Promise.all(filters.map((filter) => queue.api.list({ limit: 50, filter })))),
    ...(await Promise.all(filters.map((filter) => queue.api.count({ filter })))),
    ...(await Promise.all(
      SORT_KEYS.map((sort) => queue.api.sorted({ filter: {}, sort, descending: true, limit: 50 })),
    )),
    await queue.inside(({ q }) => [
      priorities(q, Date.now()),
      upcoming(q, Date.now()),
      oldestAvailable(q, Date.now()),
      nextDue(q.store, Date.now()),
      q.store.depth.jobs(),
      q.store.depth.bytes(),
      ids.map((id) => {
        const row = rowByKey(q.store, decodeId(id).key);
        if (!row || row.ended_at !== null || q.store.leases.active.has(row.key)) return row;
        return [row, countAhead(q.store, new Scan(), row, Date.now(), ({ key }) => !q.store.leases.active.has(key))];
      }),
    ]),
    (await queue.api.activity()).totals.map(([type, meter]) => [type, read(meter, 'enqueued')]).sort(),
    await queue.armedAt(),
  ];
  const places = new Map(ids.map((id, index) => [id, `#${index}`]));
  return JSON.stringify(asked, (name, value) => {
    if (name === 'storage') return undefined;
    return typeof value === 'string' ? (places.get(value) ?? value.replaceAll(queue.name, 'queue')) : value;
  });
}
