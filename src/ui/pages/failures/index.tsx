/** Failures in groups: a hundred thousand failed jobs are usually five mistakes. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { FailureGroup, FailureGroupFound, FailureGroups } from '../../../contract/failures';
import type { Action } from '../../components/actions';
import { ErrorOf, isIntended, type JobError } from '../../components/error';
import { type Filter, FilterBar, Newer, Pager, QueueFilter } from '../../components/list';
import { type StartedOperation, useOperation } from '../../components/operation';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, LiveRefused, Loaded, PageHead, Skeleton } from '../../components/page';
import { type Column, column, countColumn, DataTable, textColumn, timeColumn } from '../../components/table';
import { Badge, Button, Foreign, FurtherButton, JobLink, LinkButton, Names, Time } from '../../components/text';
import { api, can, type Resource, useGet, useResource } from '../../core/api';
import { number } from '../../core/format';
import { useFurther } from '../../core/further';
import { channelOf, type LiveEvent, useLive } from '../../core/live';
import { aside, href, navigate, pageNumber, query, segment, url } from '../../core/router';
import { atPath } from '../jobs/operations';
import './page.css';

const PER_PAGE = 50;

const STATES = { dead: 'Dead letters', discarded: 'Otherwise discarded', retrying: 'Retrying' };
const SINCE = { '15m': 'Last 15 minutes', '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days' };
const ORDERS = { last_seen: 'Latest failure first', first_seen: 'Newest group first' };

const FILTERS: readonly Filter[] = [
  { name: 'queue', label: 'Queue', field: QueueFilter },
  { name: 'type', label: 'Type', placeholder: 'Type: mail.*' },
  { name: 'state', label: 'State', choice: ['Dead and retrying', STATES] },
  { name: 'since', label: 'Failed', chip: 'Since', choice: ['Any time', SINCE] },
  { name: 'sort', label: 'Order', chip: null, choice: ['Most jobs first', ORDERS] },
];

const asked = () => Object.fromEntries(FILTERS.map(({ name }) => [name, query(name)]));

export default function FailuresPage() {
  const page = pageNumber();
  const wanted = asked();
  const load = (signal?: AbortSignal) =>
    api.get<FailureGroups>('admin/failures', { ...wanted, page, per_page: PER_PAGE }, signal);
  const groups = useResource(load, [JSON.stringify(wanted), page]);
  const updates = useGroupUpdates(groups, load);
  return (
    <div class="failures">
      <PageHead title="Failures" sub="Failed jobs, grouped by error." />
      <FilterBar of={FILTERS} />
      <LiveRefused />
      <Newer count={updates.newer} onShow={updates.show} />
      <Loaded of={groups} loading={<Skeleton rows={6} height={48} />}>
        {(list) => <Groups list={list} groups={groups} changed={updates.changed} />}
      </Loaded>
    </div>
  );
}

function Groups(props: { list: FailureGroups; groups: Resource<FailureGroups>; changed: ReadonlySet<string> }) {
  const { list, groups, changed } = props;
  const [start, dialog] = useOperation(groups.reload);
  const further = useFurther({
    first: list,
    place: () => JSON.stringify([asked(), query('page')]),
    ask: (cursor) => api.get<FailureGroups>('admin/failures', { ...asked(), cursor, limit: 200 }),
    join: merged,
  });
  const items = merged(list.items, further.items);
  const open = query('group');
  const begin = (fingerprint: string, action: 'redrive' | 'discard') => start(onGroup(fingerprint, action));
  const redrive: Action<FailureGroup> = {
    label: 'Redrive',
    key: ['r', 'Redrive the group'],
    run: ({ fingerprint }) => begin(fingerprint, 'redrive'),
    isFor: ({ count }) => count > 0,
  };
  return (
    <>
      <DataTable
        label="Failures"
        rows={items}
        columns={COLUMNS}
        rowKey={({ fingerprint }) => fingerprint}
        rowHref={({ fingerprint }) => aside({ group: fingerprint })}
        changed={changed}
        actions={can('admin:write') && [redrive]}
        empty={<Nothing />}
      />
      {(further.more || further.searched > 0) && (
        <p class="note faint" role="status">
          Searched the {number(list.searched + further.searched)} newest failures.{' '}
          {further.more && <FurtherButton of={further} label="Search older ones" />}
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
      {dialog}
    </>
  );
}

const COLUMNS: readonly Column<FailureGroup>[] = [
  column('error', 'Error', ({ fingerprint, error, sample }) => (
    <a class={`failure-of ${isIntended(error) ? 'intended' : ''}`} href={aside({ group: fingerprint })}>
      <strong>
        <Foreign>{error.type ?? error.code ?? 'Error'}</Foreign>
      </strong>
      <span class="mono">
        <Foreign>{(sample.message || error.message).slice(0, 300)}</Foreign>
      </span>
    </a>
  )),
  textColumn('type', 'Job type', { sort: false }),
  countColumn('count', 'Jobs', { sort: false }),
  column('states', 'Of these', ({ dead, discarded, retrying, error }) => (
    <span class="of-these">
      {dead > 0 && <Badge look={['red']} text={`${number(dead)} dead`} />}
      {discarded > 0 && (
        <Badge look={[isIntended(error) ? 'neutral' : 'red']} text={`${number(discarded)} discarded`} />
      )}
      {isIntended(error) && <Badge text="intended" />}
      {retrying > 0 && <Badge look={['amber']} text={`${number(retrying)} retrying`} />}
      {dead + discarded + retrying === 0 && <span class="faint">none left</span>}
    </span>
  )),
  column(
    'queues',
    'Queues',
    { wide: true },
    ({ queues }) => `${queues.slice(0, 3).join(', ')}${queues.length > 3 ? ` and ${queues.length - 3} more` : ''}`,
  ),
  timeColumn('first_seen_at', 'First seen', { wide: true }),
  timeColumn('last_seen_at', 'Last seen'),
];

/** Groups of two answers: one that is in both has the jobs of both. */
function merged(groups: readonly FailureGroup[], others: readonly FailureGroup[]): readonly FailureGroup[] {
  if (others.length === 0) return groups;
  const all = new Map(groups.map((group) => [group.fingerprint, group]));
  for (const other of others) {
    const group = all.get(other.fingerprint);
    all.set(other.fingerprint, group ? sum(group, other) : other);
  }
  return [...all.values()];
}

const sum = (group: FailureGroup, older: FailureGroup): FailureGroup => ({
  ...group,
  count: group.count + older.count,
  dead: group.dead + older.dead,
  discarded: group.discarded + older.discarded,
  retrying: group.retrying + older.retrying,
  queues: [...new Set([...group.queues, ...older.queues])],
  first_seen_at: group.first_seen_at < older.first_seen_at ? group.first_seen_at : older.first_seen_at,
  last_seen_at: group.last_seen_at > older.last_seen_at ? group.last_seen_at : older.last_seen_at,
});

function Nothing() {
  const isFiltered = FILTERS.some(({ name, chip }) => chip !== null && query(name) !== '');
  if (!isFiltered) {
    const text = 'Failed jobs and dead letters appear here, grouped by error.';
    return <Empty icon="completed" title="No failures" text={text} />;
  }
  return (
    <Empty icon="search" title="No matching failures">
      <Button label="Show all failures" class="link" onClick={() => navigate(href('failures'))} />
    </Empty>
  );
}

/** Shortest time between two questions, in ms: each groups the failures of the queues in which something changed. */
const PAUSE_MS = 1_500;

/** Events after which a group has other jobs than before. */
function matters({ event, data }: LiveEvent): boolean {
  if (event === 'job.state_changed') return /retryable|discarded/.test(`${data.from} ${data.to}`);
  return event === 'job.discarded' || event === 'job.expired';
}

/** Updates the counts of the groups that are shown; new groups are counted until they are asked for. */
function useGroupUpdates(groups: Resource<FailureGroups>, load: () => Promise<FailureGroups>) {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const [newer, setNewer] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const askedAt = useRef(0);
  const current = useRef(load);
  current.current = load;
  const place = url.value.search;
  useEffect(() => setNewer(0), [place]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const ask = async () => {
    timer.current = undefined;
    askedAt.current = Date.now();
    const found = await current.current().catch(() => undefined);
    if (!found || url.value.search !== place) return;
    const now = new Map(found.items.map((group) => [group.fingerprint, group]));
    const held = groups.data?.items ?? [];
    setChanged(
      new Set(held.filter((group) => isOther(group, now.get(group.fingerprint))).map(({ fingerprint }) => fingerprint)),
    );
    setNewer(found.items.filter(({ fingerprint }) => !held.some((group) => group.fingerprint === fingerprint)).length);
    groups.update((list) => ({
      ...list,
      items: list.items.map((group) => now.get(group.fingerprint) ?? emptied(group)),
    }));
  };

  useLive(channelOf(query('queue')), {
    onEvents: (events) => {
      if (!events.some(matters)) return;
      timer.current ??= setTimeout(ask, Math.max(0, askedAt.current + PAUSE_MS - Date.now()));
    },
    onGap: groups.reload,
  });
  return {
    changed,
    newer,
    show: () => {
      setNewer(0);
      groups.reload();
    },
  };
}

const isOther = (group: FailureGroup, now: FailureGroup | undefined): boolean =>
  now?.count !== group.count || now.last_seen_at !== group.last_seen_at;

const emptied = (group: FailureGroup): FailureGroup => ({ ...group, count: 0, dead: 0, discarded: 0, retrying: 0 });

interface Props {
  fingerprint: string;
  /** Changes when the group's jobs have changed. */
  version: unknown;
  onAct: (action: 'redrive' | 'discard') => void;
}

/** One group: what went wrong, where, and what to do about it. */
function GroupDrawer({ fingerprint, version, onAct }: Props) {
  const group = useGet<FailureGroupFound>(
    `admin/failures/${segment(fingerprint)}`,
    { queue: query('queue'), type: query('type'), state: query('state') },
    version,
  );
  const isGone = group.error?.status === 404 || group.data?.count === 0;
  return (
    <Drawer title="Failures" name="group">
      {isGone ? (
        <Empty icon="completed" title="No failures left">
          Its jobs were retried, completed or deleted.
        </Empty>
      ) : (
        <Loaded of={group}>
          {(found) => <Shown group={found as FailureGroupFound & FailureGroup} onAct={onAct} />}
        </Loaded>
      )}
    </Drawer>
  );
}

function Shown({ group, onAct }: { group: FailureGroupFound & FailureGroup; onAct: Props['onAct'] }) {
  const { fingerprint, type, error, count, dead, discarded, retrying, queues, sample, more } = group;
  const listed = { fingerprint, queue: query('queue') };
  const linkTo = (queue: string) => <a href={href('jobs', { fingerprint, queue })}>{queue}</a>;
  return (
    <>
      <div class="group-head">
        <strong class={isIntended(error) ? '' : 'red'}>
          <Foreign>{error.type ?? error.code ?? 'Error'}</Foreign>
        </strong>
        <p class="mono">
          <Foreign>{sample.message || error.message}</Foreign>
        </p>
      </div>
      <div class="actions">
        {can('admin:write') && (
          <Button class="primary" onClick={() => onAct('redrive')}>
            Redrive {number(count)}
            {more && '+'}
          </Button>
        )}
        {can('admin:purge') && <Button label="Discard" class="danger" onClick={() => onAct('discard')} />}
        <LinkButton label="Show the jobs" to={href('jobs', listed)} />
      </div>
      <Facts
        of={[
          ['Job type', <Foreign key="type">{type}</Foreign>],
          ['Grouped by', <Foreign key="pattern">{error.message}</Foreign>],
          ['Ended', isIntended(error) && 'as intended'],
          ['Dead letters', dead > 0 && number(dead)],
          ['Otherwise discarded', discarded > 0 && number(discarded)],
          ['Waiting for their retry', retrying > 0 && number(retrying)],
          ['First seen', <Time key="first" at={group.first_seen_at} />],
          ['Last seen', <Time key="last" at={group.last_seen_at} />],
          [queues.length === 1 ? 'Queue' : 'Queues', <Names key="queues" of={queues} show={linkTo} />],
        ]}
      />
      <Sample id={sample.job_id} message={sample.message} />
    </>
  );
}

function Sample({ id, message }: { id: string; message: string }) {
  const job = useGet<{ errors: readonly JobError[] }>(`admin/jobs/${segment(id)}`);
  const error = job.data?.errors.at(-1);
  return (
    <section class="section">
      <header>
        <h3>For example</h3>
        <JobLink id={id} />
      </header>
      {error ? <ErrorOf error={error} isOpen /> : <Foreign>{message}</Foreign>}
    </section>
  );
}

/** What narrows the groups that are listed narrows what is done to one of them; the age does not. */
function narrowed(): Record<string, unknown> {
  const names = ['queue', 'type', 'state'].filter((name) => query(name) !== '');
  return Object.fromEntries(names.map((name) => [name, query(name).split(',')]));
}

const WORDS = {
  redrive: {
    ...{ verb: 'Redrive', doing: 'Redriving', done: 'redriven' },
    text: 'They run again as soon as there is capacity, including those that wait for their next attempt.',
  },
  discard: {
    ...{ verb: 'Discard', doing: 'Discarding', done: 'deleted permanently', danger: true },
    text: 'They are deleted with their history, including those that wait for their next attempt. This cannot be undone.',
  },
};

function onGroup(fingerprint: string, action: 'redrive' | 'discard'): StartedOperation {
  return { ...WORDS[action], ...atPath(`admin/failures/${segment(fingerprint)}/${action}`, narrowed()) };
}
