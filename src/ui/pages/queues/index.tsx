/** All queues: what waits in each, how fast it goes, whether it is stopped. */
import { Sparkline } from '../../components/chart';
import { Collection } from '../../components/collection';
import { FilterChips, Filters, SelectFilter, TextFilter } from '../../components/list';
import { PageHead } from '../../components/page';
import { Empty } from '../../components/state';
import { actionsColumn, type Column, textColumn } from '../../components/table';
import { Age, Count, QueueLink } from '../../components/text';
import { href, segment } from '../../core/base';
import { number, percent } from '../../core/format';
import { useGet } from '../../core/resource';
import { pageNumber, query } from '../../core/router';
import { can } from '../../core/session';
import { FirstJob } from './first-job';
import { drain, ModeButtons, StandingBadge, toggle } from './mode';
import { ratesOf, slid, useMinute } from './recent';
import type { QueueItem, QueueList } from './types';
import { useQueueUpdates } from './updates';

const PER_PAGE = 100;

export default function QueuesPage() {
  const [page, name, mode] = [pageNumber(), query('name').trim(), query('mode')];
  const queues = useGet<QueueList>('admin/queues', { page, name, per_page: PER_PAGE, include: 'recent' });
  const changed = useQueueUpdates(queues, {
    belongs: (queue) => queue.includes(name) && (queues.data?.items.length ?? 0) < PER_PAGE,
  });
  const minute = useMinute();
  const after = (done: (row: QueueItem) => Promise<boolean>) => async (row: QueueItem) => {
    if (await done(row)) queues.reload();
  };
  return (
    <>
      <PageHead title="Queues" sub={<>{queues.data ? number(queues.data.total) : '…'} in all</>} />
      <Filters>
        <TextFilter name="name" label="Filter by name" />
        <SelectFilter
          name="mode"
          label="Mode"
          all="Any mode"
          options={{ active: 'Active', paused: 'Paused', draining: 'Draining' }}
        />
      </Filters>
      <FilterChips names={{ name: 'Name', mode: 'Mode' }} />
      <Collection
        of={queues}
        isWanted={({ status }) => mode === '' || status === mode}
        note={({ items, total }) =>
          mode !== '' &&
          total > items.length && <p class="note faint">Only the queues of this page are filtered by mode.</p>
        }
        label="Queues"
        columns={columns(minute, queues.reload)}
        rowKey={({ name: key }) => key}
        rowHref={({ name: of }) => href(`queues/${segment(of)}`)}
        changed={changed}
        keys={
          can('admin:write') && {
            p: { label: 'Pause or resume', run: after(toggle) },
            d: { label: 'Drain', run: after(drain) },
          }
        }
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

function columns(minute: number, reload: () => void): Column<QueueItem>[] {
  const state = (name: 'available' | 'scheduled' | 'retryable' | 'discarded', label: string) => ({
    id: name,
    label,
    end: true,
    sort: ({ counts }: QueueItem) => counts[name],
    render: ({ name: queue, counts }: QueueItem) => (
      <a class="quiet" href={href('jobs', { queue, state: name })}>
        <Count value={counts[name]} />
      </a>
    ),
  });
  return [
    textColumn('name', 'Queue', { render: ({ name }) => <QueueLink name={name} /> }),
    textColumn('status', 'Mode', { id: 'mode', render: (row) => <StandingBadge of={row} /> }),
    state('available', 'Available'),
    {
      id: 'active',
      label: 'Running',
      end: true,
      sort: ({ counts }) => counts.active,
      render: ({ name: queue, counts: { active }, concurrency: { limit } }) => (
        <>
          <a class="quiet" href={href('jobs', { queue, state: 'active' })}>
            <Count value={active} />
          </a>
          {limit !== null && <span class="faint"> / {number(limit)}</span>}
        </>
      ),
    },
    { ...state('scheduled', 'Scheduled'), wide: true },
    state('retryable', 'Retryable'),
    { ...state('discarded', 'Discarded'), wide: true },
    {
      id: 'oldest',
      label: 'Oldest waits',
      end: true,
      sort: ({ oldest_available_at: at }) => -Date.parse(at ?? '9999-01-01'),
      render: ({ oldest_available_at: at }) => <Age since={at} />,
    },
    {
      id: 'errors',
      label: 'Errors',
      end: true,
      wide: true,
      sort: ({ error_rate }) => error_rate,
      render: ({ error_rate }) => <span class={error_rate > 0 ? 'red' : 'faint'}>{percent(error_rate)}</span>,
    },
    {
      id: 'rate',
      label: 'Per minute',
      end: true,
      sort: (row) => ratesOf(row, minute).processed_per_minute,
      render: (row) => (
        <span class="rate">
          <Sparkline
            values={slid(row.recent, minute).map(({ processed }) => processed)}
            label={`${row.name}, processed per minute`}
          />
          <Count value={ratesOf(row, minute).processed_per_minute} />
        </span>
      ),
    },
    ...actionsColumn(can('admin:write'), (row: QueueItem) => (
      <span class="row-actions">
        <ModeButtons queue={row} small onDone={reload} />
      </span>
    )),
  ];
}
