/**
 * The queue's rules under random histories: operations, clock jumps, evictions, alarms that come late, early, twice or
 * never, and statements that fail in the middle. A model that shares no code with the product predicts every job.
 *
 * `npm run test:simulation -- --runs N --seed S` plays more; a failure prints seed and the shrunk history.
 */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { inject, it } from 'vitest';
import { Play } from './play';
import { histories, type Step } from './steps';

/** Says what is needed to play the failure again, and the shrunk history without the steps that do not matter. */
function report(details: fc.RunDetails<[(Step | null)[]]>): void {
  if (!details.failed) return;
  const steps = details.counterexample?.[0].filter((step) => step !== null) ?? [];
  const lines = steps.map((step) => `  ${JSON.stringify(step)}`).join('\n');
  const cause = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance);
  throw new Error(`seed ${details.seed}, after ${details.numRuns} histories: ${cause}\n${lines}`, {
    cause: details.errorInstance,
  });
}

const { runs, seed, length } = inject('simulation');

it(`${runs} histories of ${length} steps agree with the model`, { timeout: 3_600_000 }, async () => {
  const stub = env.QUEUES.getByName('simulated');
  await runInDurableObject(stub, (_instance, state) => {
    fc.assert(
      fc.property(histories(length), (history) => new Play(state.storage).run(history)),
      { numRuns: runs, ...(seed !== null && { seed }), reporter: report },
    );
  });
});
