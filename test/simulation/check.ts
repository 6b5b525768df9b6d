/** Plays random histories, or one that is given, and says what is needed to play a failure again. */
import fc from 'fast-check';
import { histories } from './histories';
import { Play } from './play';
import { shrink } from './shrink';
import type { History } from './steps';
import { treeHistories } from './trees';
import { TreesPlay } from './trees-play';

/** What is played. */
export interface Order {
  /** Histories at most. */
  runs: number;
  /** Absent: any. */
  seed: number | null;
  /** Steps of each. */
  length: number;
  /** The number of histories of the seed that are left out. */
  skip: number;
  /** A failing history is made small. */
  shrinks: boolean;
  /** Played in the place of random ones. */
  history: History | null;
  /** Trees of jobs that wait for jobs, in the place of the other areas. */
  trees?: boolean;
}

/** Plays a history. @returns why it failed, if it did */
type Player = (history: History, isReported?: boolean) => Promise<unknown>;

/** @returns the failure, if a history does not agree with the model */
export async function check(storage: DurableObjectStorage, order: Order): Promise<Error | undefined> {
  // A statement that was made to fail is complained about where it is met.
  const complaints: unknown[][] = [];
  const { error } = console;
  console.error = (...said) => void complaints.push(said);
  try {
    return await checkAll(order, (history, isReported = false) => play(storage, history, complaints, isReported));
  } finally {
    console.error = error;
  }
}

async function checkAll({ runs, seed, length, skip, shrinks, history, trees }: Order, play: Player) {
  if (history) return (await play(history)) === undefined ? undefined : await report('the history', history, play);
  const property = fc.asyncProperty((trees ? treeHistories : histories)(length), async (random) => {
    const failure = await play(random);
    if (failure !== undefined) throw failure;
  });
  const path = skip > 0 ? `${skip}` : '';
  const details = await fc.check(property, { numRuns: runs, endOnFailure: true, ...(seed !== null && { seed }), path });
  const failed = details.counterexample?.[0];
  if (!failed) return undefined;
  const played = skip + details.numRuns;
  if (!shrinks) return new Error(`after ${played} histories: ${messageOf(await play(failed))}`);
  return report(`seed ${details.seed}, after ${played} histories`, failed, play);
}

const errors = Error as unknown as { stackTraceLimit: number };

/** Refusals are answers by the thousand: only those of a failure that is reported say where they come from. */
async function play(storage: DurableObjectStorage, history: History, complaints: unknown[][], isReported: boolean) {
  const { stackTraceLimit } = errors;
  if (!isReported) errors.stackTraceLimit = 0;
  try {
    await new (history.trees ? TreesPlay : Play)(storage, history, complaints).run();
    return undefined;
  } catch (error) {
    return error ?? new Error('nothing was thrown');
  } finally {
    errors.stackTraceLimit = stackTraceLimit;
  }
}

/** Says what is needed to play the failure again, and the shrunk history without the steps that do not matter. */
async function report(title: string, failed: History, play: Player): Promise<Error> {
  let cause: unknown;
  const small = await shrink(failed, async (history) => {
    const failure = await play(history);
    cause = failure ?? cause;
    return failure !== undefined;
  });
  cause = (await play(small, true)) ?? cause;
  const { steps, start, ...terms } = small;
  const lines = steps.map((step) => `  ${JSON.stringify(step)}`);
  const from = `from ${new Date(start).toISOString()} ${JSON.stringify(terms)}`;
  return new Error([`${title}: ${messageOf(cause)}`, `  ${from}`, ...lines].join('\n'), { cause });
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
