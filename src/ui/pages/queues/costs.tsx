import type { Cost, CostItem } from '../../../contract/stats';
import { Stat } from '../../components/page';
import { type Column, column, countColumn, DataTable } from '../../components/table';
import { Foreign, Time } from '../../components/text';
import { href, segment } from '../../core/router';
import './queues.css';

const whole = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' });
const parts = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumSignificantDigits: 2 });

/** $12.34; of less than a cent the first two digits that are not 0. */
export function dollars(value: number | null): string {
  if (value === null) return '–';
  return value === 0 || value >= 0.01 ? whole.format(value) : parts.format(value);
}

export const CostStats = ({ of: { total, since, dollars_per_million_rows: price } }: { of: Cost }) => (
  <>
    <Stat label="Rows written" value={total.rows_written} sub={since && <>since {<Time at={since} />}</>} />
    <Stat label="Their price" value={dollars(total.dollars)} sub={`$${price} per million rows`} />
  </>
);

export function CostTable({ costs, withQueue }: { costs: Cost; withQueue?: boolean }) {
  if (costs.items.length === 0) return null;
  return (
    <>
      <div class="costs">
        <DataTable
          label="Cost by job type"
          rows={costs.items}
          rowKey={({ queue, type }) => `${queue} ${type}`}
          columns={columns(withQueue === true)}
          empty={null}
        />
      </div>
      <p class="faint not-counted">Not counted: {costs.not_counted.join(', ')}.</p>
    </>
  );
}

function columns(withQueue: boolean): Column<CostItem>[] {
  const queue = column<CostItem>('queue', 'Queue', ({ queue: of }) => (
    <a href={href(`queues/${segment(of)}`, { tab: 'cost' })}>{of}</a>
  ));
  const price = (id: 'dollars' | 'dollars_per_million_jobs', label: string) =>
    column<CostItem>(id, label, { end: true }, (row) => dollars(row[id]));
  return [
    column('type', 'Job type', ({ type }) =>
      type === null ? <span class="faint">the queue itself</span> : <Foreign>{type}</Foreign>,
    ),
    ...(withQueue ? [queue] : []),
    countColumn('jobs', 'Jobs', { sort: false }),
    countColumn('rows_written', 'Rows written', { sort: false }),
    column('each', 'Rows per job', { end: true }, ({ rows_per_job: each }) => each ?? '–'),
    price('dollars', 'Price'),
    price('dollars_per_million_jobs', 'Per million jobs'),
  ];
}
