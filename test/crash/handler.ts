/** Handler Worker of the crash test: does what its job's plan says and reports to the collector before and after. */
import { defineHandlers, UnrecoverableError } from '../../src/handler';
import { type FamilyPlan, families } from './children';
import { type DurablePlan, type Env, report, workDurably } from './durable';

interface Plan {
  token: string;
  failures: number;
  end: 'complete' | 'exhaust' | 'fatal';
  work_ms: number;
  hang_ms?: number;
  /** The life of a redriven job in which it does not fail any more. */
  saved_in?: number;
}

type Jobs = {
  'push.work': [Plan];
  'unique.work': [Plan];
  'durable.work': [DurablePlan];
  'child.work': [FamilyPlan];
  'child.undone': [FamilyPlan];
};

/** Members of a delivered job that only this test looks at. */
interface Delivered {
  id: string;
  args: [Plan];
  meta: { cron_name?: string; cron_scheduled_at?: string; life?: number };
  startedAt?: string;
  parentResults?: unknown[];
}

/** As `tokenOf` of `identity.mjs`. */
function tokenOf({ id, args: [{ token }], meta }: Delivered): string {
  return meta.cron_name === undefined ? token : `${token}@${meta.cron_scheduled_at ?? `by hand ${id}`}`;
}

async function work(given: unknown, { attempt, env }: { attempt: number; env: Env }) {
  const job = given as Delivered;
  const [{ failures, end, work_ms, hang_ms, saved_in }] = job.args;
  const token = tokenOf(job);
  const life = job.meta.life ?? 0;
  const run = { token, attempt, life };
  const { startedAt: started_at, parentResults: parent_results } = job;
  await report(env.COLLECTOR, '/start', { ...run, started_at, parent_results });
  await scheduler.wait(attempt === 1 ? (hang_ms ?? work_ms) : work_ms);
  const dies = end === 'exhaust' && (saved_in === undefined || life < saved_in);
  if (dies || attempt <= failures) {
    await report(env.COLLECTOR, '/end', { ...run, outcome: 'failure' });
    throw new Error(`planned ${token} ${attempt}`);
  }
  if (end === 'fatal') {
    await report(env.COLLECTOR, '/end', { ...run, outcome: 'fatal' });
    throw new UnrecoverableError(`planned ${token} ${attempt}`);
  }
  await report(env.COLLECTOR, '/end', { ...run, outcome: 'success' });
  return { token, attempt };
}

export default defineHandlers<Jobs, Env>(
  { 'push.work': work, 'unique.work': work, 'durable.work': workDurably, ...families },
  { log: () => undefined },
);
