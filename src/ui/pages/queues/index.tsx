/** All queues: what waits in each, how fast it goes, whether it is stopped. */
import { Badge, type Tone } from '../../components/badge';
import { Sparkline } from '../../components/chart';
import { FilterChips, Filters, Pager, SelectFilter, TextFilter } from '../../components/list';
import { PageHead } from '../../components/page';
import { Empty, Loaded } from '../../components/state';
import { type Column, DataTable } from '../../components/table';
import { Age, Count } from '../../components/text';
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { act, confirm } from '../../core/dialogs';
import { useResource } from '../../core/resource';
import { pageNumber, query } from '../../core/router';
import { can } from '../../core/session';
import type { QueueItem, QueueList } from './types';
import { useQueueUpdates } from './updates';

const PER_PAGE = 100;

const MODES: Readonly<Record<string, Tone>> = { active: 'green', paused: 'amber', draining: 'violet' };

export default function QueuesPage() {
  const page = pageNumber();
  const queues = useResource(
    (signal) => api.get<QueueList>('admin/queues', { page, per_page: PER_PAGE, include: 'recent' }, signal),
    [page],
  );
  const changed = useQueueUpdates(queues);
  return (
    <>
      <PageHead title="Queues" sub={queues.data && <>{queues.data.total} in all</>} />
      <Filters>
        <TextFilter name="name" label="Filter by name" />
        <SelectFilter
          name="mode"
          label="Mode"
          all="Any mode"
          options={[
            ['active', 'Active'],
            ['paused', 'Paused'],
            ['draining', 'Draining'],
          ]}
        />
      </Filters>
      <FilterChips names={{ name: 'Name', mode: 'Mode' }} />
      <Loaded of={queues}>
        {({ items, total }) => (
          <>
            <DataTable
              label="Queues"
              rows={items.filter(isWanted)}
              columns={columns(queues.reload)}
              rowKey={({ name }) => name}
              rowHref={({ name }) => href(`queues/${segment(name)}`)}
              changed={changed}
              keys={
                can('admin:write') ? { p: { label: 'Pause or resume', run: (row) => toggle(row, queues.reload) } } : {}
              }
              empty={items.length === 0 ? <NoQueues /> : <Empty icon="search" title="No queue fits" />}
            />
            <Pager total={total} perPage={PER_PAGE} />
          </>
        )}
      </Loaded>
    </>
  );
}

function isWanted({ name, status }: QueueItem): boolean {
  const mode = query('mode');
  return name.includes(query('name').trim()) && (mode === '' || status === mode);
}

function columns(reload: () => void): Column<QueueItem>[] {
  const state = (name: 'available' | 'active' | 'scheduled' | 'retryable' | 'discarded', label: string) => ({
    id: name,
    label,
    end: true,
    sort: ({ counts }: QueueItem) => counts[name] ?? 0,
    render: ({ name: queue, counts }: QueueItem) => (
      <a class="quiet" href={href('jobs', { queue, state: name })}>
        <Count value={counts[name] ?? 0} />
      </a>
    ),
  });
  return [
    {
      id: 'name',
      label: 'Queue',
      sort: ({ name }) => name,
      render: ({ name }) => <a href={href(`queues/${segment(name)}`)}>{name}</a>,
    },
    {
      id: 'mode',
      label: 'Mode',
      sort: ({ status }) => status,
      render: ({ status }) => <Badge tone={MODES[status] ?? 'neutral'}>{status}</Badge>,
    },
    state('available', 'Available'),
    state('active', 'Active'),
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
      id: 'rate',
      label: 'Per minute',
      end: true,
      sort: rateOf,
      render: (row) => (
        <span class="rate">
          {row.recent && (
            <Sparkline
              values={row.recent.map(({ processed }) => processed)}
              label={`${row.name}, processed per minute`}
            />
          )}
          <Count value={rateOf(row)} />
        </span>
      ),
    },
    ...(can('admin:write')
      ? [
          {
            id: 'actions',
            label: 'Actions',
            bare: true,
            end: true,
            render: (row: QueueItem) => (
              <button type="button" class="small" onClick={() => toggle(row, reload)}>
                {row.paused ? 'Resume' : 'Pause'}
              </button>
            ),
          },
        ]
      : []),
  ];
}

function rateOf({ throughput }: QueueItem): number {
  return typeof throughput === 'number' ? throughput : (throughput?.processed_per_minute ?? 0);
}

async function toggle({ name, paused }: QueueItem, reload: () => void): Promise<void> {
  const sure =
    paused ||
    (await confirm({
      title: `Pause ${name}?`,
      text: 'Jobs that run go on; no other job starts until the queue is resumed.',
      action: 'Pause',
    }));
  if (!sure) return;
  const verb = paused ? 'resume' : 'pause';
  if (
    await act(() => api.post(`admin/queues/${segment(name)}/${verb}`), `${name} is ${paused ? 'resumed' : 'paused'}.`)
  ) {
    reload();
  }
}

function NoQueues() {
  return (
    <Empty icon="queues" title="No queues yet">
      A queue appears with its first job: <code>npx tocsin enqueue</code>, the client, or <code>POST /ojs/v1/jobs</code>
      .
    </Empty>
  );
}
