/** Makes a failing history small, by large pieces first: what is left of it matters. */
import { kindOf } from './areas';
import type { History, Step } from './steps';

/** Plays of a history at most, so that a slow failure is told all the same. */
const MAX_PLAYS = 300;
const MAX_LARGE_PLAYS = 60;

/**
 * Leaves out steps and what they say, as long as the history goes on failing.
 * @param fails plays a history
 */
export async function shrink(history: History, fails: (history: History) => Promise<boolean>): Promise<History> {
  let left = history.large ? MAX_LARGE_PLAYS : MAX_PLAYS;
  const goesOn = async (steps: Step[]): Promise<boolean> => left-- > 0 && (await fails({ ...history, steps }));
  let steps = history.steps.filter((step) => step !== null);
  for (let before = Number.POSITIVE_INFINITY; sizeOf(steps) < before && left > 0; ) {
    before = sizeOf(steps);
    steps = await leaveOut(steps, goesOn);
    for (let index = 0; index < steps.length; index++) {
      for (const plainer of plainerSteps(steps[index] as Step)) {
        const changed = steps.with(index, plainer);
        if (sizeOf(changed) < sizeOf(steps) && (await goesOn(changed))) steps = changed;
      }
    }
  }
  return { ...history, steps };
}

async function leaveOut(all: Step[], fails: (steps: Step[]) => Promise<boolean>): Promise<Step[]> {
  let steps = all;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < steps.length; ) {
      const rest = steps.toSpliced(from, size);
      if (await fails(rest)) steps = rest;
      else from += size;
    }
  }
  return steps;
}

/** The same step with less in it, or about a job that is easier to name. */
function plainerSteps(step: Step): Step[] {
  if ('step' in step) return [step.step, ...plainerSteps(step.step).map((inner) => ({ ...step, step: inner }))];
  const { plainer } = kindOf(step);
  if (plainer) return plainer(step);
  return 'pick' in step ? Array.from({ length: 9 }, (_, index) => ({ ...step, pick: index + 1 })) : [];
}

function sizeOf(steps: readonly Step[]): number {
  return JSON.stringify(steps).length;
}
