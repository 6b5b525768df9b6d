/**
 * What may befall a queue that no rule foresees: rows that cannot be read any more, and a clock that goes back. What becomes of
 * each job can then no longer be said, so it happens last. What is promised all the same: nothing stops the queue. Whatever was
 * not damaged is given out and ends as it should, what had completed never runs again, and a new job is served.
 */
import fc from 'fast-check';
import { ApiError } from '../../src/job/errors';
import type { JobView } from '../../src/job/record';
import { claim } from '../../src/queue/jobs/claim';
import { enqueue } from '../../src/queue/jobs/enqueue';
import { settleReport } from '../../src/queue/jobs/report';
import { find, keyInside, viewOf } from '../../src/queue/read/find';
import { list } from '../../src/queue/read/list';
import { stats } from '../../src/queue/read/stats';
import { holds } from './agree';
import { compareFresh } from './fresh';
import { PROBE } from './jobs';
import type { ModelJob } from './model';
import type { Scene } from './scene';
import { newJob } from './wire';

type Row = Record<string, SqlStorageValue>;

/** A text that storage may lose: what finds its row, and the keys of the jobs that it says something of. */
interface Place {
  table: string;
  column: string;
  id: string;
  keys(row: Row): number[];
}

const spanned = ({ first, span }: Row) => Array.from({ length: Number(span) }, (_, index) => Number(first) + index);
const own = ({ key }: Row) => [Number(key)];
const ofNone = () => [];
const named = (column: 'data' | 'heads') => (row: Row) =>
  (JSON.parse(String(row[column])) as [number][]).map(([key]) => key);

const PLACES = {
  archive: {
    ...{ table: 'archive', column: 'data', id: 'chunk' },
    keys: ({ data }) => (JSON.parse(String(data)) as { k: number }[]).map(({ k }) => k),
  },
  leases: {
    ...{ table: 'leases', column: 'data', id: 'id' },
    keys: ({ data }) => (JSON.parse(String(data)) as { e: [number][] }).e.map(([key]) => key),
  },
  blocks: { table: 'blocks', column: 'data', id: 'first', keys: spanned },
  heads: { table: 'blocks', column: 'heads', id: 'first', keys: spanned },
  dueBlocks: { table: 'due_blocks', column: 'data', id: 'first', keys: spanned },
  dueHeads: { table: 'due_blocks', column: 'heads', id: 'first', keys: spanned },
  retries: { table: 'retry_blocks', column: 'data', id: 'block', keys: named('data') },
  retryHeads: { table: 'retry_blocks', column: 'heads', id: 'block', keys: named('heads') },
  bodies: { table: 'jobs', column: 'body', id: 'key', keys: own },
  histories: { table: 'jobs', column: 'history', id: 'key', keys: own },
  progress: { table: 'progress', column: 'data', id: 'key', keys: own },
  checkpoints: { table: 'checkpoints', column: 'data', id: 'key', keys: own },
  meters: { table: 'meters', column: 'data', id: 'id', keys: ofNone },
  limits: { table: 'limit_keys', column: 'data', id: 'key', keys: ofNone },
} satisfies Record<string, Place>;

/** The texts that are damaged, or by how much the clock goes back; ms. */
export type Aftermath = { damage: { place: keyof typeof PLACES; pick: number }[] } | { back: number };

const damage = fc.record({
  place: fc.oneof(fc.constantFrom('archive' as const, 'leases' as const), {
    weight: 2,
    arbitrary: fc.constantFrom(...(Object.keys(PLACES) as (keyof typeof PLACES)[])),
  }),
  pick: fc.nat(20),
});

export const aftermaths: fc.Arbitrary<Aftermath> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ damage: fc.array(damage, { minLength: 1, maxLength: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ back: fc.constantFrom(1, 1_000, 5_000, 60_000, 3_600_000, 86_400_000) }) },
);

/** Longer than any lease, delay or pause of these histories, ms. */
const LONG = 31 * 60_000;

/** Rounds in a row that must give nothing before nothing is left. */
const SILENT_ROUNDS = 3;

export async function live(scene: Scene, aftermath: Aftermath): Promise<void> {
  const { world, model } = scene;
  const over = new Set(model.jobs.filter(({ state }) => state === 'completed').map(({ id }) => id));
  const touched = 'damage' in aftermath ? spoil(scene, aftermath.damage) : new Set<number>();
  const early = 'back' in aftermath ? await goBack(scene, aftermath.back) : new Set<string>();
  if ('damage' in aftermath) world.start();
  for (const id of early) over.add(id);
  const { q } = world.engine;
  const probed = await newJob(PROBE, world.now);
  const isTouched = ({ id }: ModelJob) => touched.has(keyInside(q, id) ?? -1);
  const stood = model.jobs.filter((job) => job.state !== 'gone' && !isTouched(job));
  const [probe] = world.engine.writeNow((now) => enqueue(q, [probed], now).jobs);
  // Reading is not stopped either, be it of what is damaged.
  const look = () => {
    stats(world.engine.tidied(), world.now);
    list(q, { limit: 200 }, world.now);
  };
  look();
  const ran = workOff(scene, over, 'back' in aftermath ? aftermath.back + LONG : LONG);
  look();
  holds(ran.has(probe?.record.id ?? ''), () => 'a new job was not served');
  for (const { id, state } of stood) {
    const found = find(q, id);
    const is = found && viewOf(q, found, world.now).record.state;
    const isEnded = ['completed', 'cancelled', 'discarded'].includes(is ?? 'completed');
    if (state === 'completed') holds((is ?? state) === state, () => `${id} had completed, and is ${is}`);
    else holds(isEnded || state === 'pending', () => `${id} is still ${is}, although nothing of it was damaged`);
  }
}

/** Breaks texts where they lie. @returns keys of the jobs that they say something of */
function spoil({ world }: Scene, damages: { place: keyof typeof PLACES; pick: number }[]): Set<number> {
  const touched = new Set<number>();
  for (const { place, pick } of damages) {
    const { table, column, id, keys }: Place = PLACES[place];
    const rows = world.sql.exec(`SELECT * FROM ${table} WHERE json_valid(${column}) ORDER BY ${id}`).toArray();
    const row = rows[pick % Math.max(1, rows.length)];
    if (!row) continue;
    for (const key of keys(row)) touched.add(key);
    const broken = String(row[column]).slice(0, -1);
    world.sql.exec(`UPDATE ${table} SET ${column} = ? WHERE ${id} = ?`, broken, row[id]).toArray();
  }
  return touched;
}

/**
 * The same object goes on at an earlier time: what it knows of the future must not keep it asleep.
 * @returns ids of jobs that have run
 */
async function goBack(scene: Scene, by: number): Promise<Set<string>> {
  const { world, model } = scene;
  const { q } = world.engine;
  const jobs = await Promise.all(Array.from({ length: 4 }, () => newJob({ ...PROBE, limit: 'narrow' }, world.now)));
  world.engine.writeNow((now) => enqueue(q, jobs, now));
  // Some run, and others wait for their key, when it happens.
  const running: Running[] = model.jobs
    .filter(({ state, order }) => state === 'active' && order.limit !== null)
    .map(({ id, attempt, lease }) => ({ id, attempt, worker_id: lease?.worker }));
  const views = world.engine.writeNow((now) => claim(q, { count: 20, worker_id: 'ann' }, now).jobs);
  running.push(...views.map(({ record }) => record));
  world.now -= by;
  world.engine.tidied();
  compareFresh(scene, false);
  // What was available may be due again: the next plan says when.
  world.fire();
  compareFresh(scene, true, { limits: false });
  return new Set(running.filter((job) => complete(scene, job)).map(({ id }) => id));
}

interface Running {
  id: string;
  attempt: number;
  worker_id?: string | undefined;
}

/** @returns false when the job does not run any more */
function complete({ world }: Scene, { id, attempt, worker_id }: Running): boolean {
  const { engine } = world;
  const report = { kind: 'completed' as const, job_id: id, attempt, ...(worker_id && { worker_id }), result: '1' };
  try {
    engine.writeNow((now) => settleReport(engine.q, report, now, () => 0.5));
    return true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}

/**
 * Claims and completes until nothing more comes.
 * @param over ids of jobs that must not run again
 * @param pause how long a job may have to wait for something, ms
 * @returns ids of those that ran
 */
function workOff(scene: Scene, over: ReadonlySet<string>, pause: number): Set<string> {
  const { world } = scene;
  const { engine } = world;
  const ran = new Set<string>();
  const rounds = 20 * scene.model.jobs.length + 50;
  for (let round = 0, silent = 0; silent < SILENT_ROUNDS; round++) {
    holds(round < rounds, () => `jobs still come after ${rounds} rounds`);
    const views: JobView[] = engine.writeNow((now) => claim(engine.q, { count: 100, worker_id: 'ann' }, now).jobs);
    for (const { record } of views) {
      holds(!over.has(record.id), () => `${record.id} had completed, and runs again`);
      holds(complete(scene, record), () => `${record.id} could not be completed`);
      ran.add(record.id);
    }
    silent = views.length > 0 ? 0 : silent + 1;
    world.now += views.length > 0 ? 1_000 : pause;
    world.fire();
  }
  return ran;
}
