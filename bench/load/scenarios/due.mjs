/** 10,000 jobs due at the same millisecond: how late does each start, by its handler's clock? */
import { summary } from '../../stats.mjs';
import { startsLate } from '../steps.mjs';

export const title = '10,000 jobs due at the same moment: start after it';
export const columns = ['jobs', 'started', 'early', 'p50_ms', 'p99_ms', 'max_ms'];

export async function run({ port }, { quick }) {
  const jobs = quick ? 1_000 : 10_000;
  const late = await startsLate(port, 'load-due', jobs, quick ? 2_000 : 4_000);
  const { p50, p99, max } = summary(late);
  const early = late.filter((ms) => ms < 0).length;
  return [{ jobs, started: late.length, early, p50_ms: p50, p99_ms: p99, max_ms: max }];
}
