/** Rows written and their price, by job type. */
import type { Cost, CostItem } from '../../../contract/stats';
import { Stat } from '../../components/page';
import { DataTable } from '../../components/table';
import { Count, Foreign, Time } from '../../components/text';
import { href, segment } from '../../core/base';
import { adopt } from '../../core/styles';
import css from './queues.css' with { type: 'text' };

adopt(css);

const whole = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' });
const parts = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumSignificantDigits: 2 });

/** $12.34; of less than a cent the first two digits that are not 0. */
export function dollars(value: number | null): string {
  if (value === null) return '–';
  return value === 0 || value >= 0.01 ? whole.format(value) : parts.format(value);
}

/** The sum, in a row of numbers. */
export function CostStats({ of: { total, since, dollars_per_million_rows: price } }: { of: Cost }) {
  return (
    <>
      <Stat label="Rows written" sub={since && <>since {<Time at={since} />}</>}>
        <Count value={total.rows_written} />
      </Stat>
      <Stat label="Their price" sub={`$${price} per million rows`}>
        {dollars(total.dollars)}
      </Stat>
    </>
  );
}

export function CostTable({ costs, withQueue }: { costs: Cost; withQueue?: boolean }) {
  if (costs.items.length === 0) return null;
  return (
    <>
      <div class="costs">
        <DataTable
          label="Cost by job type"
          rows={costs.items}
          rowKey={({ queue, type }) => `${queue} ${type}`}
          columns={[
            {
              id: 'type',
              label: 'Job type',
              render: ({ type }) =>
                type === null ? <span class="faint">the queue itself</span> : <Foreign>{type}</Foreign>,
            },
            ...(withQueue
              ? [
                  {
                    id: 'queue',
                    label: 'Queue',
                    render: ({ queue }: CostItem) => (
                      <a href={href(`queues/${segment(queue)}`, { tab: 'cost' })}>{queue}</a>
                    ),
                  },
                ]
              : []),
            { id: 'jobs', label: 'Jobs', end: true, render: ({ jobs }) => <Count value={jobs} /> },
            { id: 'rows', label: 'Rows written', end: true, render: ({ rows_written: n }) => <Count value={n} /> },
            { id: 'each', label: 'Rows per job', end: true, render: ({ rows_per_job: each }) => each ?? '–' },
            { id: 'price', label: 'Price', end: true, render: (row) => dollars(row.dollars) },
            {
              id: 'million',
              label: 'Per million jobs',
              end: true,
              render: (row) => dollars(row.dollars_per_million_jobs),
            },
          ]}
          empty={null}
        />
      </div>
      <p class="faint not-counted">Not counted: {costs.not_counted.join(', ')}.</p>
    </>
  );
}
