import { type Outcome, outcomeOf } from '../job/errors';

/** Makes a change, then notifies the objects concerned. @param spread returns how many have not confirmed yet */
export async function changing<T extends object>(
  change: (now: number) => T,
  spread: () => Promise<number>,
): Promise<Outcome<T & { untold: number }>> {
  const changed = outcomeOf(() => change(Date.now()));
  return changed.ok ? { ok: true, value: { ...changed.value, untold: await spread() } } : changed;
}
