/** All jobs: found by what they say and where they are, and acted on one by one, in a selection, or all that match. */
import { useState } from 'preact/hooks';
import type { JobItems, JobSummary } from '../../../contract/jobs';
import type { Action as RowAction } from '../../components/actions';
import { FilterChips, Filters, Newer, Pager, QueueFilter, SelectFilter, TextFilter } from '../../components/list';
import { useOperation } from '../../components/operation';
import { Empty, LiveRefused, Loaded, PageHead, Skeleton, Tabs } from '../../components/page';
import { SelectionBar, useSelection } from '../../components/selection';
import { DataTable } from '../../components/table';
import { Button, FurtherButton, JOB_STATES, LinkButton } from '../../components/text';
import { api, can, type Resource, useGet } from '../../core/api';
import { act } from '../../core/dialogs';
import { capitalized, number, short } from '../../core/format';
import { useFurther } from '../../core/further';
import { aside, href, pageNumber, query, segment, url, withQuery } from '../../core/router';
import { ChooseColumns, detailQuery, shownColumns } from './columns';
import { EnqueueDrawer } from './enqueue';
import { chips, filterQuery, VALUES } from './filter';
import { type Action, DEAD_WORDS, onChosen, onMatching } from './operations';
import { useJobUpdates } from './updates';
import './page.css';
import { FormDialog, TextField, textIn } from '../../components/form';

const PER_PAGE = 50;
const NOT_FILTERS = ['page', 'sort', 'order', 'enqueue'];

export default function JobsPage() {
  const page = pageNumber();
  const filter = filterQuery();
  const [sort, order] = [query('sort'), query('order')];
  const jobs = useGet<JobItems>('admin/jobs', {
    ...{ ...filter, ...detailQuery() },
    page,
    per_page: PER_PAGE,
    counts: true,
    ...(sort && { sort, order: order || 'asc' }),
  });
  const updates = useJobUpdates(jobs);
  return (
    <div class="jobs">
      <PageHead title="Jobs" sub={jobs.data && <Total of={jobs.data} />}>
        <Views />
        <ChooseColumns />
        {can('data:write') && <LinkButton icon="plus" label="Enqueue" to={aside({ enqueue: '1' })} />}
      </PageHead>
      <StateTabs of={jobs.data} />
      <JobFilters />
      <FilterChips names={chips()} values={VALUES} />
      <LiveRefused />
      <Newer count={updates.newer} onShow={updates.show} />
      <Loaded of={jobs} loading={<Skeleton rows={12} />}>
        {(list) => <Found list={list} jobs={jobs} changed={updates.changed} />}
      </Loaded>
      {query('enqueue') !== '' && can('data:write') && <EnqueueDrawer />}
    </div>
  );
}

const Total = ({ of: { total, total_is_exact, searched } }: { of: JobItems }) => (
  <>
    {number(total)}
    {total_is_exact === false && ' or more'} {searched === undefined ? 'in all' : 'found'}
  </>
);

function StateTabs({ of: list }: { of: JobItems | undefined }) {
  const { counts, counts_exact: exact = true } = list ?? {};
  const shown = (count: number | undefined) =>
    counts === undefined ? undefined : `${short(count ?? 0)}${exact ? '' : '+'}`;
  const all = Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0);
  const tabs = [
    { id: '', label: 'All', count: shown(all) },
    ...JOB_STATES.map((state) => ({ id: state as string, label: capitalized(state), count: shown(counts?.[state]) })),
  ];
  return <Tabs tabs={tabs} name="state" />;
}

const JobFilters = () => (
  <Filters kind="of-jobs">
    <TextFilter name="q" label="Search" placeholder="Id, type, error, arguments" />
    <QueueFilter />
    <TextFilter name="type" label="Type" placeholder="Type: mail.*" />
    <TextFilter name="tag" label="Tag" />
    <TextFilter name="error" label="Words in the error" placeholder="Error" />
    <SelectFilter name="dead" label="Dead letters" all="With dead letters" options={VALUES.dead} />
    <SelectFilter name="since" label="Created" all="Created any time" options={VALUES.since} />
  </Filters>
);

interface FoundProps {
  list: JobItems;
  jobs: Resource<JobItems>;
  changed: ReadonlySet<string>;
}

function Found({ list, jobs, changed }: FoundProps) {
  const selection = useSelection(NOT_FILTERS);
  const [start, dialog] = useOperation(() => {
    selection.clear();
    jobs.reload();
  });
  const further = useFurther<JobSummary>({
    first: list,
    place: () => url.value.search,
    ask: (cursor) => api.get<JobItems>('admin/jobs', { ...filterQuery(), ...detailQuery(), cursor, limit: PER_PAGE }),
    join: (held, next) => [...held, ...next],
  });
  const mayAct = can('admin:write');
  const dead = query('dead') === 'true';
  const items = further.items.length > 0 ? [...list.items, ...further.items] : list.items;
  const byKey = (key: string, label: string, action: 'retry' | 'cancel'): RowAction<JobSummary> => ({
    ...{ label, key: [key, label], keyOnly: true },
    run: (job) => actOn(job, action),
    onSelection: () => begin(action),
  });
  const begin = (action: Action) =>
    start(
      selection.all
        ? onMatching(action, dead, list.total_is_exact === false ? undefined : list.total)
        : onChosen(action, [...selection.ids], dead),
    );
  return (
    <div aria-busy={jobs.loading} class="found">
      <DataTable
        label="Jobs"
        rows={items}
        columns={shownColumns()}
        rowKey={({ id }) => id}
        rowHref={({ id }) => href(`jobs/${id}`)}
        selection={mayAct ? selection : undefined}
        actions={mayAct && [byKey('r', 'Retry', 'retry'), byKey('c', 'Cancel', 'cancel')]}
        changed={changed}
        empty={<Nothing isFiltered={Object.keys(filterQuery()).length > 0} more={further.more} />}
      />
      {list.searched !== undefined && (
        <p class="searched" role="status">
          Searched {number(list.searched + further.searched)} jobs, the newest first.
          {further.more ? <FurtherButton of={further} label="Search further" /> : ' No more jobs.'}
        </p>
      )}
      {list.searched === undefined && (
        <Pager
          total={list.total}
          perPage={PER_PAGE}
          hasMore={list.pagination.has_more}
          atLeast={list.total_is_exact === false}
        />
      )}
      <SelectionBar
        selection={selection}
        total={list.total}
        noun={selection.all && list.total_is_exact === false ? 'jobs or more' : 'jobs'}
      >
        <Button label={dead ? DEAD_WORDS.retry?.verb : 'Retry'} onClick={() => begin('retry')} />
        <Button label="Cancel" onClick={() => begin('cancel')} />
        {can('admin:purge') && (
          <Button label={dead ? DEAD_WORDS.delete?.verb : 'Delete'} class="danger" onClick={() => begin('delete')} />
        )}
      </SelectionBar>
      {dialog}
    </div>
  );
}

function actOn({ id, type }: JobSummary, action: 'retry' | 'cancel'): Promise<boolean> {
  const done = action === 'retry' ? 'runs again' : 'is cancelled';
  return act(() => api.post(`admin/jobs/${segment(id)}/${action}`), `${type} ${done}.`);
}

function Nothing({ isFiltered, more }: { isFiltered: boolean; more: boolean }) {
  if (isFiltered) {
    return (
      <Empty icon="search" title={more ? 'No matches so far' : 'No matching jobs'}>
        <a href={href('jobs')}>Show all jobs</a>
      </Empty>
    );
  }
  return (
    <Empty icon="jobs" title="No jobs yet">
      {can('data:write') ? (
        <a href={withQuery({ enqueue: '1' })}>Enqueue the first</a>
      ) : (
        'Jobs appear here as they are enqueued.'
      )}
    </Empty>
  );
}

const VIEWS_KEY = 'tocsin.views.jobs';
const MAX_VIEWS = 20;

interface View {
  name: string;
  /** The query of the URL, from its question mark on. */
  search: string;
}

function stored(): readonly View[] {
  try {
    const views = JSON.parse(localStorage.getItem(VIEWS_KEY) ?? '[]') as View[];
    return views
      .filter(({ name, search }) => typeof name === 'string' && typeof search === 'string')
      .slice(0, MAX_VIEWS);
  } catch {
    return [];
  }
}

function currentSearch(): string {
  const { searchParams } = new URL(url.value);
  for (const name of ['page', 'enqueue']) searchParams.delete(name);
  return searchParams.size > 0 ? `?${searchParams}` : '';
}

function Views() {
  const [views, setViews] = useState(stored);
  const [naming, setNaming] = useState(false);
  const search = currentSearch();
  const open = views.find((view) => view.search === search);
  const keep = (next: readonly View[]) => {
    setViews(next);
    localStorage.setItem(VIEWS_KEY, JSON.stringify(next));
  };
  const save = async (form: FormData) => {
    const name = textIn(form, 'name');
    keep([...views.filter((view) => view.name !== name), { name, search }].slice(-MAX_VIEWS));
    return `${name} is saved in this browser.`;
  };
  return (
    <>
      {views.length > 0 && (
        <nav class="views" aria-label="Saved views">
          {views.map(({ name, search: to }) => (
            <a key={name} href={href('jobs') + to} aria-current={to === search ? 'page' : undefined}>
              <bdi>{name}</bdi>
            </a>
          ))}
        </nav>
      )}
      {open ? (
        <Button icon="trash" label="Delete view" onClick={() => keep(views.filter((view) => view !== open))} />
      ) : (
        search !== '' && <Button icon="filter" label="Save view" onClick={() => setNaming(true)} />
      )}
      {naming && (
        <FormDialog title="Save this view" action="Save" onSubmit={save} onClose={() => setNaming(false)}>
          <TextField
            name="name"
            label="Name"
            hint="The view is saved in this browser. To share it, share the URL."
            required
            maxLength={40}
          />
        </FormDialog>
      )}
    </>
  );
}
