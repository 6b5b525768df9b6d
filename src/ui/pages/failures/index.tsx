/** Failures in groups: a hundred thousand failed jobs are usually five mistakes. */
import { useEffect, useState } from 'preact/hooks';
import { Badge } from '../../components/badge';
import { FilterChips, Filters, Newer, Pager, SelectFilter, TextFilter } from '../../components/list';
import { type Operation, OperationDialog } from '../../components/operation';
import { PageHead } from '../../components/page';
import { Empty, Loaded, Skeleton } from '../../components/state';
import { actionsColumn, type Column, DataTable } from '../../components/table';
import { Count, Foreign, Time } from '../../components/text';
import { api } from '../../core/api';
import { aside } from '../../core/aside';
import { href } from '../../core/base';
import { failed } from '../../core/dialogs';
import { number } from '../../core/format';
import { refusal } from '../../core/live';
import { type Resource, useResource } from '../../core/resource';
import { navigate, pageNumber, query, url } from '../../core/router';
import { can } from '../../core/session';
import { adopt } from '../../core/styles';
import { GroupDrawer } from './group';
import { onGroup } from './operations';
import css from './page.css' with { type: 'text' };
import type { Group, GroupList } from './types';
import { useGroupUpdates } from './updates';

adopt(css);

const PER_PAGE = 50;

export default function FailuresPage() {
  const page = pageNumber();
  const wanted = Object.fromEntries(['queue', 'type', 'state', 'since', 'sort'].map((name) => [name, query(name)]));
  const load = (signal?: AbortSignal) =>
    api.get<GroupList>('admin/failures', { ...wanted, page, per_page: PER_PAGE }, signal);
  const groups = useResource(load, [JSON.stringify(wanted), page]);
  const updates = useGroupUpdates(groups, load);
  const queues = useResource(
    (signal) => api.get<{ items: readonly { name: string }[] }>('admin/queues', { per_page: 100 }, signal),
    [],
  );
  return (
    <div class="failures">
      <PageHead title="Failures" sub="Jobs that failed with the same error, together." />
      <Filters>
        <SelectFilter
          name="queue"
          label="Queue"
          all="All queues"
          options={(queues.data?.items ?? []).map(({ name }) => [name, name] as const)}
        />
        <TextFilter name="type" label="Type" placeholder="Type: mail.*" />
        <SelectFilter
          name="state"
          label="What became of them"
          all="Dead and retrying"
          options={[
            ['dead', 'Dead letters'],
            ['discarded', 'Otherwise discarded'],
            ['retrying', 'Retrying'],
          ]}
        />
        <SelectFilter
          name="since"
          label="Failed"
          all="Any time"
          options={[
            ['15m', 'Last 15 minutes'],
            ['1h', 'Last hour'],
            ['24h', 'Last 24 hours'],
            ['7d', 'Last 7 days'],
          ]}
        />
        <SelectFilter
          name="sort"
          label="Order"
          all="Most jobs first"
          options={[
            ['last_seen', 'Latest failure first'],
            ['first_seen', 'Newest group first'],
          ]}
        />
      </Filters>
      <FilterChips names={{ queue: 'Queue', type: 'Type', state: 'State', since: 'Since' }} />
      {refusal.value && <p class="note amber">Live updates are off: {refusal.value}</p>}
      <Newer count={updates.newer} onShow={updates.show} />
      <Loaded of={groups} loading={<Skeleton rows={6} height={48} />}>
        {(list) => <Groups list={list} groups={groups} changed={updates.changed} />}
      </Loaded>
    </div>
  );
}

function Groups(props: { list: GroupList; groups: Resource<GroupList>; changed: ReadonlySet<string> }) {
  const { list, groups, changed } = props;
  const [operation, setOperation] = useState<Operation>();
  const further = useFurther(list);
  const items = merged(list.items, further.items);
  const open = query('group');
  const begin = (fingerprint: string, action: 'redrive' | 'discard') => setOperation(onGroup(fingerprint, action));
  return (
    <>
      <DataTable
        label="Failures"
        rows={items}
        columns={columns((group) => begin(group.fingerprint, 'redrive'))}
        rowKey={({ fingerprint }) => fingerprint}
        rowHref={({ fingerprint }) => aside({ group: fingerprint })}
        changed={changed}
        keys={
          can('admin:write')
            ? { r: { label: 'Redrive the group', run: (group) => begin(group.fingerprint, 'redrive') } }
            : {}
        }
        empty={<Nothing />}
      />
      {(further.more || further.searched > 0) && (
        <p class="note faint" role="status">
          Looked at the {number(list.searched + further.searched)} newest failures.{' '}
          {further.more && (
            <button type="button" class="link" disabled={further.busy} onClick={further.look}>
              {further.busy ? 'Looking…' : 'There are older ones: look further'}
            </button>
          )}
        </p>
      )}
      <Pager total={list.total} perPage={PER_PAGE} hasMore={list.pagination.has_more} atLeast={list.more} />
      {open !== '' && (
        <GroupDrawer
          fingerprint={open}
          version={items.find(({ fingerprint }) => fingerprint === open)?.count}
          onAct={(action) => begin(open, action)}
        />
      )}
      {operation && <OperationDialog of={operation} onClose={() => setOperation(undefined)} onDone={groups.reload} />}
    </>
  );
}

function columns(redrive: (group: Group) => void): Column<Group>[] {
  return [
    {
      id: 'error',
      label: 'Error',
      render: ({ fingerprint, error }) => (
        <a class="failure-of" href={aside({ group: fingerprint })}>
          <strong>
            <Foreign>{error.type ?? error.code ?? 'Error'}</Foreign>
          </strong>
          <span class="mono">
            <Foreign>{error.message.slice(0, 300)}</Foreign>
          </span>
        </a>
      ),
    },
    { id: 'type', label: 'Job type', render: ({ type }) => <Foreign>{type}</Foreign> },
    { id: 'count', label: 'Jobs', end: true, render: ({ count }) => <Count value={count} /> },
    {
      id: 'states',
      label: 'Of these',
      render: ({ dead, discarded, retrying }) => (
        <span class="of-these">
          {dead > 0 && <Badge tone="red">{number(dead)} dead</Badge>}
          {discarded > 0 && <Badge tone="red">{number(discarded)} discarded</Badge>}
          {retrying > 0 && <Badge tone="amber">{number(retrying)} retrying</Badge>}
          {dead + discarded + retrying === 0 && <span class="faint">none left</span>}
        </span>
      ),
    },
    {
      id: 'queues',
      label: 'Queues',
      wide: true,
      render: ({ queues }) =>
        `${queues.slice(0, 3).join(', ')}${queues.length > 3 ? ` and ${queues.length - 3} more` : ''}`,
    },
    { id: 'first', label: 'First seen', end: true, wide: true, render: ({ first_seen_at: at }) => <Time at={at} /> },
    { id: 'last', label: 'Last seen', end: true, render: ({ last_seen_at: at }) => <Time at={at} /> },
    ...actionsColumn(can('admin:write'), (group: Group) => (
      <button type="button" class="small" disabled={group.count === 0} onClick={() => redrive(group)}>
        Redrive
      </button>
    )),
  ];
}

/** Groups of older failures: the server groups so many at a time. */
function useFurther(list: GroupList) {
  const [found, setFound] = useState<{ items: readonly Group[]; searched: number; cursor: string | null }>();
  const [busy, setBusy] = useState(false);
  const place = ['queue', 'type', 'state', 'since', 'sort', 'page'].map(query).join('\n');
  useEffect(() => setFound(undefined), [place]);
  const cursor = found ? found.cursor : list.cursor;
  const look = async () => {
    setBusy(true);
    const asked = url.value.search;
    try {
      const wanted = Object.fromEntries(['queue', 'type', 'state', 'since', 'sort'].map((name) => [name, query(name)]));
      const next = await api.get<GroupList>('admin/failures', { ...wanted, cursor, limit: 200 });
      if (url.value.search !== asked) return;
      setFound((held) => ({
        items: merged(held?.items ?? [], next.items),
        searched: (held?.searched ?? 0) + next.searched,
        cursor: next.cursor,
      }));
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
    }
  };
  return { items: found?.items ?? [], searched: found?.searched ?? 0, more: cursor !== null, busy, look };
}

/** Groups of two answers: one that is in both has the jobs of both. */
function merged(groups: readonly Group[], others: readonly Group[]): readonly Group[] {
  if (others.length === 0) return groups;
  const all = new Map(groups.map((group) => [group.fingerprint, group]));
  for (const other of others) {
    const group = all.get(other.fingerprint);
    all.set(other.fingerprint, group ? sum(group, other) : other);
  }
  return [...all.values()];
}

function sum(group: Group, older: Group): Group {
  return {
    ...group,
    count: group.count + older.count,
    dead: group.dead + older.dead,
    discarded: group.discarded + older.discarded,
    retrying: group.retrying + older.retrying,
    queues: [...new Set([...group.queues, ...older.queues])],
    first_seen_at: group.first_seen_at < older.first_seen_at ? group.first_seen_at : older.first_seen_at,
    last_seen_at: group.last_seen_at > older.last_seen_at ? group.last_seen_at : older.last_seen_at,
  };
}

function Nothing() {
  const isFiltered = ['queue', 'type', 'state', 'since'].some((name) => query(name) !== '');
  if (!isFiltered) {
    return (
      <Empty icon="completed" title="Nothing has failed">
        Jobs whose attempts failed, and dead letters, are grouped here by their error.
      </Empty>
    );
  }
  return (
    <Empty icon="search" title="No failure fits">
      <button type="button" class="link" onClick={() => navigate(href('failures'))}>
        Show all failures
      </button>
    </Empty>
  );
}
