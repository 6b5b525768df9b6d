/** How fast queues go, together: numbers of the last minutes, in a row of others. */
import { Stat } from '../../components/page';
import { Age, Count } from '../../components/text';
import { percent } from '../../core/format';
import { errorRateOf, ratesOf, useMinute } from './recent';
import type { QueueItem } from './types';

export function Pace({ of: queues }: { of: readonly QueueItem[] }) {
  const minute = useMinute();
  const rates = queues.map((queue) => ratesOf(queue, minute));
  const rate = (name: keyof (typeof rates)[number]) => rates.reduce((sum, one) => sum + one[name], 0);
  const errors = errorRateOf(queues, minute);
  const oldest = queues.flatMap(({ oldest_available_at: at }) => at ?? []).sort()[0];
  return (
    <>
      <Stat label="Enqueued" sub="per minute">
        <Count value={rate('enqueued_per_minute')} />
      </Stat>
      <Stat label="Processed" sub="per minute">
        <Count value={rate('processed_per_minute')} />
      </Stat>
      <Stat label="Failed" sub="per minute">
        <Count value={rate('failed_per_minute')} />
      </Stat>
      <Stat label="Error rate" sub="of 5 minutes" tone={errors > 0 ? 'red' : ''}>
        {percent(errors)}
      </Stat>
      <Stat label="Oldest waits" sub="for its turn">
        <Age since={oldest} />
      </Stat>
    </>
  );
}
