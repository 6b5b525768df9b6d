/** The queue goes out as a file at any moment, and comes in again elsewhere: nothing lacks, and the file is the same. */
import fc from 'fast-check';
import type { StoredJob, StoredState } from '../../src/export/stored-job';
import type { QueueEngine } from '../../src/queue/engine';
import { importParts } from '../../src/queue/features/lifecycle/import';
import { beginExport, exportPage } from '../../src/queue/read/export';
import type { ExportPage, ExportStart } from '../../src/rpc/export';
import { holds, same } from './agree';
import type { Area } from './area';
import type { Scene } from './scene';
import type { StepOf } from './steps';

/** Pages have so many jobs, and parts. */
export type FileStep = { op: 'file'; page: number; part: number };

const LARGEST_PAGE = 200;

/** What the model says of a job that a file has in this state. */
const STATES: Record<StoredState, readonly string[]> = {
  waiting: ['scheduled', 'available', 'active', 'retryable'],
  pending: ['pending'],
  completed: ['completed'],
  cancelled: ['cancelled'],
  discarded: ['discarded'],
  dead: ['discarded'],
};

/** Facts about the queue that stay when it is emptied: its jobs know none of them. */
const SETTINGS = "('schema', 'name', 'route', 'created_at', 'config', 'groups', 'defaults', 'paused')";

function linesOf({ q }: QueueEngine, { until }: ExportStart, limit: number, now: number): string[] {
  const lines: string[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: ExportPage = exportPage(q, { after, until, ended: true, limit }, now);
    lines.push(...page.lines.split('\n').slice(0, -1));
    after = page.next;
  }
  return lines;
}

const textOf = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value));

/** A job of a line as its reader gives it. */
function storedIn(line: string): StoredJob {
  const { history, checkpoint, run, body, ...job } = JSON.parse(line).job;
  return {
    ...job,
    body: textOf(body),
    ...(history && { history: textOf(history) }),
    ...(checkpoint && { checkpoint: { ...checkpoint, content: textOf(checkpoint.content) } }),
    ...(run && { run: { ...run, ...('result' in run && { result: textOf(run.result) }) } }),
  };
}

function file(scene: Scene, { page, part }: StepOf<'file'>): void {
  const { world, model } = scene;
  world.engine.tidied();
  scene.tidy();
  scene.finish();
  if (scene.q.config.removal) return;
  const { now } = scene;
  const start = beginExport(scene.q);
  const lines = linesOf(world.engine, start, page, now);
  const jobs = lines.map(storedIn);
  const there = new Map(model.jobs.flatMap((job) => (job.state === 'gone' ? [] : [[job.id, model.stateOf(job, now)]])));
  same(
    jobs.map(({ id }) => id),
    [...there.keys()],
    'jobs in the file',
  );
  for (const { id, state } of jobs) {
    holds(STATES[state].includes(there.get(id) ?? ''), () => `${id} is ${there.get(id)}, and in the file ${state}`);
  }
  world.asNew(true, (engine) => {
    const tables = world.sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    for (const { name } of tables.filter(({ name }) => !name.startsWith('_cf_'))) {
      world.sql.exec(`DELETE FROM ${name}${name === 'meta' ? ` WHERE key NOT IN ${SETTINGS}` : ''}`);
    }
    engine.q.load();
    for (let at = 0, number = 1; at < jobs.length; at += part, number++) {
      const parts = [{ number, jobs: jobs.slice(at, at + part) }];
      const { imported } = importParts(engine.q, { file: 'f', merge: false, parts }, now);
      // As at the end of a transaction, without what goes on by itself.
      engine.q.flush();
      engine.q.publish();
      engine.q.finish();
      same(imported, parts[0]?.jobs.length, 'jobs imported');
    }
    for (const isReloaded of [false, true]) {
      if (isReloaded) engine.q.load();
      const size = isReloaded ? LARGEST_PAGE : page;
      same(linesOf(engine, beginExport(engine.q), size, now), lines, 'the file of what was imported');
    }
  });
}

export const area: Area<FileStep> = {
  kinds: { file },
  steps: [
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant('file' as const),
        page: fc.constantFrom(1, 3, LARGEST_PAGE),
        part: fc.constantFrom(1, 4, 500),
      }),
    },
  ],
};
