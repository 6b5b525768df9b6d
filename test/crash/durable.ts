/**
 * The handler with durable steps: does what its job's plan says, in a handler Worker and in a worker that pulls, and tells
 * the collector everything before it goes on. Each word is heard before the next thing is done, so that whatever was told
 * has happened, and what was told first has happened first.
 */
import { type HandlerContext, type Job, SignalTimeoutError } from '../../src/handler';

export interface Env {
  COLLECTOR: string;
}

/** One thing that the handler does. `breaks` and `attempt`: it fails in this attempt. */
type Act =
  | { do: 'step'; name: string; work_ms: number; breaks?: number }
  | { do: 'both'; acts: { name: string; work_ms: number }[] }
  | { do: 'sleep'; name: string; ms: number }
  | { do: 'wait'; name: string; timeout_ms: number }
  | { do: 'fail'; attempt: number };

export interface DurablePlan {
  token: string;
  acts: Act[];
}

export async function report(collector: string, path: string, body: Record<string, unknown>): Promise<void> {
  const response = await fetch(collector + path, { method: 'POST', body: JSON.stringify(body) });
  await response.text();
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export async function workDurably(job: Job<[DurablePlan]>, ctx: HandlerContext<Env>) {
  const [{ token, acts }] = job.args;
  const run = crypto.randomUUID();
  const recorded = (Reflect.get(job, 'steps') ?? {}) as Record<string, { until?: number }>;
  const values: Record<string, unknown> = {};
  const tell = (event: string, more: Record<string, unknown> = {}) =>
    report(ctx.env.COLLECTOR, '/durable', { token, run, event, at: Date.now(), ...more });

  const step = async ({ name, work_ms, breaks }: { name: string; work_ms: number; breaks?: number }) => {
    const result = await ctx.step(name, async () => {
      const value = crypto.randomUUID();
      await tell('begin', { name, value });
      await pause(work_ms);
      if (ctx.attempt === breaks) throw new Error(`planned ${token} ${ctx.attempt}`);
      await tell('finish', { name, value });
      return { value };
    });
    values[name] = result.value;
    await tell('resolved', { name, value: result.value });
  };

  const wait = async (name: string, timeout: number) => {
    await tell('waiting', { name });
    try {
      values[name] = await ctx.waitFor(name, { timeout });
    } catch (error) {
      if (!(error instanceof SignalTimeoutError)) throw error;
      values[name] = 'timed out';
    }
    await tell('heard', { name, value: values[name] });
  };

  await tell('run', { attempt: ctx.attempt, startedAt: Date.parse(job.startedAt ?? '') });
  for (const act of acts) {
    if (act.do === 'step') await step(act);
    else if (act.do === 'both') await Promise.all(act.acts.map(step));
    else if (act.do === 'wait') await wait(act.name, act.timeout_ms);
    else if (act.do === 'sleep') {
      await tell('asleep', { name: act.name, ms: act.ms });
      await ctx.sleep(act.name, act.ms);
      await tell('awake', { name: act.name, until: recorded[act.name]?.until });
    } else if (act.attempt === ctx.attempt) throw new Error(`planned ${token} ${ctx.attempt}`);
  }
  await tell('end', { attempt: ctx.attempt });
  return { token, attempt: ctx.attempt, values };
}
