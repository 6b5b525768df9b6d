/** The groups of a queue: what waits and runs of each, and what can be done to its jobs. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { QueueGroup, QueueGroupList } from '../../../contract/queues';
import { Badge } from '../../components/badge';
import { Pager } from '../../components/list';
import { OperationDialog, type StartedOperation } from '../../components/operation';
import { Empty, Loaded } from '../../components/state';
import { actionsColumn, type Column, DataTable } from '../../components/table';
import { Count, Foreign, JobLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { act } from '../../core/dialogs';
import { useResource } from '../../core/resource';
import { pageNumber } from '../../core/router';
import { can, isHidden } from '../../core/session';
import { type Action, onFilter } from '../jobs/operations';
import { GroupDialog, pathOf, purgeOf } from './group-dialog';
import type { QueueTab } from './tab';

const PER_PAGE = 100;

/** Counting groups reads a part of the backlog, so it is not done for each event. */
const EVERY_MS = 2_000;

export function GroupsTab({ queue: { name }, round }: QueueTab) {
  const page = pageNumber();
  const slowly = useSlowly(round);
  const groups = useResource(
    (signal) => api.get<QueueGroupList>(`queues/${segment(name)}/groups`, { page, per_page: PER_PAGE }, signal),
    [name, page, slowly],
  );
  const [operation, setOperation] = useState<StartedOperation>();
  const [limited, setLimited] = useState<QueueGroup>();
  const begin = (action: Action, { group }: QueueGroup) => setOperation(onFilter(action, { queue: name, group }));
  const actions: Actions = {
    retry: (row) => begin('retry', row),
    cancel: (row) => begin('cancel', row),
    purge: (row) => setOperation(purgeOf(name, row)),
    limit: setLimited,
    async pause({ group, paused }) {
      const path = `${pathOf(name, group)}/${paused ? 'resume' : 'pause'}`;
      if (await act(() => api.post(path), `${group} is ${paused ? 'resumed' : 'paused'}.`)) groups.reload();
    },
  };
  const keys = {
    r: { label: 'Retry its jobs', run: (row: QueueGroup) => isNamed(row) && actions.retry(row) },
    c: { label: 'Cancel its jobs', run: (row: QueueGroup) => isNamed(row) && actions.cancel(row) },
    p: { label: 'Pause or resume it', run: (row: QueueGroup) => isNamed(row) && actions.pause(row) },
    l: { label: 'Limit it', run: (row: QueueGroup) => isNamed(row) && actions.limit(row) },
  };
  return (
    <Loaded of={groups}>
      {({ items, total, counts_are_exact }) => (
        <>
          {counts_are_exact === false && (
            <p class="note faint" role="status">
              More jobs wait than were counted: the numbers are those of the first ones.
            </p>
          )}
          <DataTable
            label="Groups"
            rows={items}
            rowKey={({ group }) => group}
            columns={columns(name, actions)}
            keys={can('admin:write') ? keys : {}}
            empty={
              <Empty icon="jobs" title="No job with a group waits or runs">
                A job names its group: <code>{'"options": {"group": "acme"}'}</code>.
              </Empty>
            }
          />
          <Pager total={total} perPage={PER_PAGE} />
          {limited && (
            <GroupDialog queue={name} of={limited} onClose={() => setLimited(undefined)} onDone={groups.reload} />
          )}
          {operation && (
            <OperationDialog of={operation} onClose={() => setOperation(undefined)} onDone={groups.reload} />
          )}
        </>
      )}
    </Loaded>
  );
}

/** Follows a number that rises, at most once in a while. */
function useSlowly(round: number): number {
  const [shown, setShown] = useState(round);
  const latest = useRef(round);
  latest.current = round;
  const isWaiting = round !== shown;
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setTimeout(() => setShown(latest.current), EVERY_MS);
    return () => clearTimeout(timer);
  }, [isWaiting]);
  return shown;
}

/** Filters take the group itself, which this key may not see. */
const isNamed = ({ group }: QueueGroup) => !isHidden(group);

/** What can be done to a group, and to its jobs. */
type Actions = Record<'retry' | 'cancel' | 'purge' | 'limit' | 'pause', (row: QueueGroup) => void>;

function columns(queue: string, actions: Actions): Column<QueueGroup>[] {
  const count = (id: 'waiting' | 'limited' | 'running' | 'weight', label: string) => ({
    ...{ id, label, end: true, wide: id === 'limited' || id === 'weight' },
    sort: (row: QueueGroup) => row[id],
    render: (row: QueueGroup) => <Count value={row[id]} />,
  });
  return [
    {
      id: 'group',
      label: 'Group',
      sort: ({ group }) => group,
      render: (row) => (
        <>
          <a {...(isNamed(row) && { href: href('jobs', { queue, group: row.group }) })}>
            <Foreign>{row.group}</Foreign>
          </a>{' '}
          {row.noisy && <Badge tone="amber">noisy</Badge>}
          {row.paused && (
            <Badge tone="red" icon="pause">
              paused
            </Badge>
          )}
        </>
      ),
    },
    count('waiting', 'Waiting'),
    count('limited', 'Limited'),
    count('running', 'Running'),
    count('weight', 'Weight'),
    {
      id: 'oldest',
      label: 'Oldest',
      sort: ({ oldest_waiting_at }) => oldest_waiting_at ?? '',
      render: ({ oldest_waiting_at }) => <Time at={oldest_waiting_at} />,
    },
    {
      id: 'blocked',
      label: 'Blocked by',
      wide: true,
      render: ({ blocked_by }) => (blocked_by === null ? <span class="faint">–</span> : <JobLink id={blocked_by} />),
    },
    ...actionsColumn(can('admin:write'), (row: QueueGroup) =>
      isNamed(row) ? (
        <span class="row-actions">
          {can('data:write') && (
            <>
              <button type="button" class="small" onClick={() => actions.pause(row)}>
                {row.paused ? 'Resume' : 'Pause'}
              </button>
              <button type="button" class="small" onClick={() => actions.limit(row)}>
                Limit
              </button>
            </>
          )}
          <button type="button" class="small" onClick={() => actions.retry(row)}>
            Retry
          </button>
          <button type="button" class="small" onClick={() => actions.cancel(row)}>
            Cancel
          </button>
          {can('admin:purge') && (
            <button type="button" class="small" onClick={() => actions.purge(row)}>
              Purge
            </button>
          )}
        </span>
      ) : null,
    ),
  ];
}
