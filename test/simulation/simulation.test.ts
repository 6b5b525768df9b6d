/**
 * The queue's rules under random histories: operations, schedules, unique jobs, clock jumps (also past changes of daylight
 * saving), evictions, alarms that come late, early, twice or never, other queues that are busy, statements that fail in
 * the middle, and texts as long as they may be. A model that shares no code with the product predicts every job, every fire
 * and every refusal; no answer is a defect, none is too large for a message, and in the end the queue still works.
 *
 * `npm run test:simulation -- --runs N --seed S` plays more; a failure prints seed and the shrunk history.
 */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { inject, it, vi } from 'vitest';
import { histories } from './histories';
import { Play } from './play';
import { shrink } from './shrink';
import type { History } from './steps';

/** Plays a history. @returns why it failed, if it did */
type Player = (history: History) => Promise<unknown>;

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Says what is needed to play the failure again, and the shrunk history without the steps that do not matter. */
async function report(title: string, failed: History, play: Player): Promise<never> {
  let cause: unknown;
  const small = await shrink(failed, async (history) => {
    const failure = await play(history);
    cause = failure ?? cause;
    return failure !== undefined;
  });
  cause = (await play(small)) ?? cause;
  const { steps, start, ...terms } = small;
  const lines = steps.map((step) => `  ${JSON.stringify(step)}`);
  const from = `from ${new Date(start).toISOString()} ${JSON.stringify(terms)}`;
  throw new Error([`${title}: ${messageOf(cause)}`, `  ${from}`, ...lines].join('\n'), { cause });
}

const { runs, seed, length, skip, shrinks, history: given } = inject('simulation');

it(given ? 'the history agrees with the model' : `${runs} histories of ${length} steps agree with the model`, {
  timeout: 3_600_000,
}, async () => {
  const stub = env.QUEUES.getByName('simulated');
  await runInDurableObject(stub, async (_instance, state) => {
    // A statement that was made to fail is complained about where it is met.
    const complaints: unknown[][] = [];
    vi.spyOn(console, 'error').mockImplementation((...said) => void complaints.push(said));
    const play: Player = (history) =>
      new Play(state.storage, history, complaints).run().then(
        () => undefined,
        (error: unknown) => error ?? new Error('nothing was thrown'),
      );
    if (given) {
      if ((await play(given as History)) !== undefined) await report('the history', given as History, play);
      return;
    }
    const property = fc.asyncProperty(histories(length), async (history) => {
      const failure = await play(history);
      if (failure !== undefined) throw failure;
    });
    const terms = {
      numRuns: runs,
      endOnFailure: true,
      ...(seed !== null && { seed }),
      path: skip > 0 ? `${skip}` : '',
    };
    const details = await fc.check(property, terms);
    const failed = details.counterexample?.[0];
    const played = skip + details.numRuns;
    if (failed && !shrinks) throw new Error(`after ${played} histories: ${messageOf(await play(failed))}`);
    if (failed) await report(`seed ${details.seed}, after ${played} histories`, failed, play);
  });
});
