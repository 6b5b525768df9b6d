/** Handler Worker of the crash test: does what its job's plan says and reports to the collector before and after. */
import { defineHandlers, UnrecoverableError } from '../../src/handler';

interface Plan {
  token: string;
  failures: number;
  end: 'complete' | 'exhaust' | 'fatal';
  work_ms: number;
  hang_ms?: number;
}

type Jobs = { 'push.work': [Plan] };

async function report(collector: string, path: string, body: Record<string, unknown>): Promise<void> {
  const response = await fetch(collector + path, { method: 'POST', body: JSON.stringify(body) });
  await response.text();
}

export default defineHandlers<Jobs, { COLLECTOR: string }>(
  {
    'push.work': async (job, { attempt, env }) => {
      const [{ token, failures, end, work_ms, hang_ms }] = job.args;
      const run = { token, attempt };
      await report(env.COLLECTOR, '/start', { ...run, started_at: (job as { started_at?: string }).started_at });
      await scheduler.wait(attempt === 1 ? (hang_ms ?? work_ms) : work_ms);
      if (end === 'exhaust' || attempt <= failures) {
        await report(env.COLLECTOR, '/end', { ...run, outcome: 'failure' });
        throw new Error(`planned ${token} ${attempt}`);
      }
      if (end === 'fatal') {
        await report(env.COLLECTOR, '/end', { ...run, outcome: 'fatal' });
        throw new UnrecoverableError(`planned ${token} ${attempt}`);
      }
      await report(env.COLLECTOR, '/end', { ...run, outcome: 'success' });
      return { token, attempt };
    },
  },
  { log: () => undefined },
);
