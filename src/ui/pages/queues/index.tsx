/** All queues: what waits in each, how fast it goes, whether it is stopped. */

import { type Filter, FilterBar } from '../../components/list';
import { Empty, PageHead } from '../../components/page';
import { Collection, type Column, column, textColumn } from '../../components/table';
import { Age, Count, QueueLink } from '../../components/text';
import { can, useGet } from '../../core/api';
import { number, percent } from '../../core/format';
import { href, pageNumber, query, segment } from '../../core/router';
import { FirstJob } from './first-job';
import { ACTIONS, StandingBadge } from './mode';
import { paceColumn, paceOf } from './pace';
import { useMinute } from './recent';
import type { QueueItem, QueueList } from './types';
import { useQueueUpdates } from './updates';

const PER_PAGE = 100;

const FILTERS: readonly Filter[] = [
  { name: 'name', label: 'Filter by name', chip: 'Name' },
  { name: 'mode', label: 'Mode', choice: ['Any mode', { active: 'Active', paused: 'Paused', draining: 'Draining' }] },
];

export default function QueuesPage() {
  const [page, name, mode] = [pageNumber(), query('name').trim(), query('mode')];
  const queues = useGet<QueueList>('admin/queues', { page, name, per_page: PER_PAGE, include: 'recent' });
  const changed = useQueueUpdates(queues, {
    belongs: (queue) => queue.includes(name) && (queues.data?.items.length ?? 0) < PER_PAGE,
  });
  const minute = useMinute();
  return (
    <>
      <PageHead title="Queues" sub={<>{queues.data ? number(queues.data.total) : '…'} in all</>} />
      <FilterBar of={FILTERS} />
      <Collection
        of={queues}
        isWanted={({ status }) => mode === '' || status === mode}
        note={({ items, total }) =>
          mode !== '' &&
          total > items.length && <p class="note faint">Only the queues of this page are filtered by mode.</p>
        }
        label="Queues"
        columns={columns(minute)}
        rowKey={({ name: key }) => key}
        rowHref={({ name: of }) => href(`queues/${segment(of)}`)}
        changed={changed}
        actions={can('admin:write') && ACTIONS}
        perPage={PER_PAGE}
        empty={
          queues.data?.total === 0 && name === '' ? (
            <FirstJob title="No queues yet" />
          ) : (
            <Empty icon="search" title="No matching queues" text="Change or remove the filters above." />
          )
        }
      />
    </>
  );
}

function columns(minute: number): Column<QueueItem>[] {
  const state = (name: 'available' | 'active' | 'scheduled' | 'retryable' | 'discarded', label: string, wide = false) =>
    column<QueueItem>(
      name,
      label,
      { end: true, wide, sort: ({ counts }) => counts[name] },
      ({ name: queue, counts, concurrency: { limit } }) => (
        <>
          <a class="quiet" href={href('jobs', { queue, state: name })}>
            <Count value={counts[name]} />
          </a>
          {name === 'active' && limit !== null && <span class="faint"> / {number(limit)}</span>}
        </>
      ),
    );
  return [
    textColumn('name', 'Queue', ({ name }) => <QueueLink name={name} />),
    textColumn('status', 'Mode', { id: 'mode' }, (row) => <StandingBadge of={row} />),
    state('available', 'Available'),
    state('active', 'Running'),
    state('scheduled', 'Scheduled', true),
    state('retryable', 'Retryable'),
    state('discarded', 'Discarded', true),
    column(
      'oldest',
      'Oldest waits',
      { end: true, sort: ({ oldest_available_at: at }) => -Date.parse(at ?? '9999-01-01') },
      ({ oldest_available_at: at }) => <Age since={at} />,
    ),
    column('errors', 'Errors', { end: true, wide: true, sort: ({ error_rate }) => error_rate }, ({ error_rate }) => (
      <span class={error_rate > 0 ? 'red' : 'faint'}>{percent(error_rate)}</span>
    )),
    paceColumn('rate', minute, { sort: (row) => paceOf(row, minute) }),
  ];
}
