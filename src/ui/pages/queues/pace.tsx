/** How fast queues go, together: numbers of the last minutes, in a row of others. */
import { Sparkline } from '../../components/chart';
import { Stat } from '../../components/page';
import { type Column, column } from '../../components/table';
import { Age, Count } from '../../components/text';
import { percent } from '../../core/format';
import { errorRateOf, ratesOf, slid, useMinute } from './recent';
import type { QueueItem } from './types';

export function Pace({ of: queues }: { of: readonly QueueItem[] }) {
  const minute = useMinute();
  const rates = queues.map((queue) => ratesOf(queue, minute));
  const rate = (name: keyof (typeof rates)[number]) => rates.reduce((sum, one) => sum + one[name], 0);
  const errors = errorRateOf(queues, minute);
  const oldest = queues.flatMap(({ oldest_available_at: at }) => at ?? []).sort()[0];
  return (
    <>
      <Stat label="Enqueued" value={rate('enqueued_per_minute')} sub="per minute" />
      <Stat label="Processed" value={rate('processed_per_minute')} sub="per minute" />
      <Stat label="Failed" value={rate('failed_per_minute')} sub="per minute" />
      <Stat label="Error rate" value={percent(errors)} sub="of 5 minutes" tone={errors > 0 ? 'red' : ''} />
      <Stat label="Oldest waits" value={<Age since={oldest} />} sub="for its turn" />
    </>
  );
}

export const paceOf = (queue: QueueItem, minute: number) => ratesOf(queue, minute).processed_per_minute;

/** What a queue processes per minute, and how that went in the last half hour. @param more among it its width, px */
export function paceColumn(id: string, minute: number, more: Pick<Column<QueueItem>, 'sort'> & { width?: number }) {
  const { width = 96, ...rest } = more;
  const render = (row: QueueItem) => (
    <span class="rate">
      <Sparkline
        values={slid(row.recent, minute).map(({ processed }) => processed)}
        label={`${row.name}, processed per minute`}
        width={width}
      />
      <Count value={paceOf(row, minute)} />
    </span>
  );
  return column<QueueItem>(id, 'Per minute', { end: true, ...rest }, render);
}
