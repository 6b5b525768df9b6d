/**
 * The queue's rules under random histories: operations, schedules, unique jobs, clock jumps (also past changes of daylight
 * saving), evictions, alarms that come late, early, twice or never, other queues that are busy, and statements that fail in
 * the middle. A model that shares no code with the product predicts every job, every fire and every refusal.
 *
 * `npm run test:simulation -- --runs N --seed S` plays more; a failure prints seed and the shrunk history.
 */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { inject, it, vi } from 'vitest';
import { Play } from './play';
import { type History, histories } from './steps';

/** Says what is needed to play the failure again, and the shrunk history without the steps that do not matter. */
function report(details: fc.RunDetails<[History]>): void {
  if (!details.failed) return;
  const { start = 0, steps = [] } = details.counterexample?.[0] ?? {};
  const lines = steps
    .filter((step) => step !== null)
    .map((step) => `  ${JSON.stringify(step)}`)
    .join('\n');
  const cause = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance);
  throw new Error(
    `seed ${details.seed}, after ${details.numRuns} histories: ${cause}\n  from ${new Date(start).toISOString()}\n${lines}`,
    {
      cause: details.errorInstance,
    },
  );
}

const { runs, seed, length } = inject('simulation');

it(`${runs} histories of ${length} steps agree with the model`, { timeout: 3_600_000 }, async () => {
  const stub = env.QUEUES.getByName('simulated');
  await runInDurableObject(stub, async (_instance, state) => {
    // A statement that was made to fail is complained about where it is met.
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await fc.assert(
      fc.asyncProperty(histories(length), (history) => new Play(state.storage, history).run()),
      { numRuns: runs, ...(seed !== null && { seed }), reporter: report },
    );
  });
});
