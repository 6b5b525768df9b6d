/** Reports unreadable completed jobs: an event and a log line for each archive chunk, once. */
import type { TransactionStep } from '../../../durable/group-commit';
import type { Feature, Host } from '../../feature';
import { takeDamaged } from '../../store/damaged-chunks';

export class DamageWatch implements Feature {
  constructor(private readonly host: Host) {}

  /** The damage that this transaction has found, and that found since the last one. */
  steps(now: number, when: 'before' | 'after'): TransactionStep[] {
    if (when === 'before') return [];
    const { q } = this.host;
    return takeDamaged(q.store.sql).map(({ chunk, jobs, sequences }) => {
      const numbers = rangesOf(sequences);
      console.error(
        `tocsin: queue ${q.name} cannot read ${jobs} completed jobs in chunk ${chunk} of its archive: numbers ${numbers} are treated as ended`,
      );
      const told = { chunk, jobs, numbers };
      return { run: () => q.observed.events.add('queue.archive_damaged', q.name, now, told), failed: () => undefined };
    });
  }
}

/** Numbers as text: `3-5, 9`. */
function rangesOf(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}
