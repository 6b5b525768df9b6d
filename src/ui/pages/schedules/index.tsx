/** All schedules: when each fires next, how it went, whether it is stopped. */
import { useState } from 'preact/hooks';
import type { CronItems, CronStatus } from '../../../contract/cron';
import { NewButton } from '../../components/actions';
import { type Filter, FilterBar } from '../../components/list';
import { Empty, PageHead } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn, timeColumn } from '../../components/table';
import { Foreign, Link, QueueLink, Time } from '../../components/text';
import { api, can, useGet } from '../../core/api';
import { useListUpdates } from '../../core/list-updates';
import { aside, pageNumber, query } from '../../core/router';
import { describe } from './describe';
import { ScheduleForm } from './form';
import { ScheduleDrawer, ScheduleState } from './one';
import { ACTIONS, pathOf } from './types';
import './page.css';

const PER_PAGE = 100;

const FILTERS: readonly Filter[] = [
  { name: 'q', label: 'Filter by name, queue or type', chip: 'Text' },
  {
    name: 'status',
    label: 'State',
    choice: ['Any state', { active: 'Active', paused: 'Paused', completed: 'Completed' }],
  },
];

export default function SchedulesPage() {
  const page = pageNumber();
  const schedules = useGet<CronItems>('crons', { page, per_page: PER_PAGE });
  const [fired, setFired] = useState(0);

  const { changed } = useListUpdates<CronStatus, CronItems, CronStatus>(schedules, {
    keyOf: nameOf,
    about: ({ event, data }) => (event.startsWith('cron.') ? String(data.cron_name) : undefined),
    ask: (name) => api.get(pathOf(name)),
    isNew: (names) => names.length > 0,
  });
  const changedHere = () => {
    schedules.reload();
    setFired((count) => count + 1);
  };
  const mayWrite = can('data:write');
  return (
    <div class="schedules-page">
      <PageHead title="Schedules" sub={schedules.data && <>{schedules.data.pagination.total} in all</>}>
        <NewButton label="New schedule" scope="data:write" edit=":new" />
      </PageHead>
      <FilterBar of={FILTERS} />
      <Collection
        of={schedules}
        isWanted={isWanted}
        label="Schedules"
        columns={COLUMNS}
        rowKey={nameOf}
        nameOf={nameOf}
        rowHref={({ name }) => aside({ open: name })}
        changed={changed}
        actions={mayWrite && ACTIONS}
        onDone={changedHere}
        perPage={PER_PAGE}
        unmatched={schedules.data?.items.length !== 0 && 'No matching schedules'}
        empty={
          <Empty icon="schedules" title="No schedules yet">
            A schedule enqueues a job repeatedly. Create one here, or with <code>POST /ojs/v1/cron</code>.
          </Empty>
        }
      />
      {query('open') && <ScheduleDrawer name={query('open')} round={fired} onChanged={changedHere} />}
      {mayWrite && query('edit') && <ScheduleForm name={query('edit')} onSaved={changedHere} />}
    </div>
  );
}

function isWanted({ name, queue, type, status }: CronStatus): boolean {
  const text = query('q').trim().toLowerCase();
  const state = query('status');
  return (
    (text === '' || [name, queue, type].some((one) => one.toLowerCase().includes(text))) &&
    (state === '' || status === state)
  );
}

const nameOf = ({ name }: CronStatus) => name;
const time = (at: string | null, otherwise: number) => (at === null ? otherwise : Date.parse(at));

const COLUMNS: readonly Column<CronStatus>[] = [
  textColumn(
    'name',
    'Schedule',
    { under: ({ description: text }) => text && <Foreign>{text}</Foreign> },
    ({ name }) => <Link to={aside({ open: name })} text={name} />,
  ),
  textColumn('status', 'State', (row) => <ScheduleState of={row} />),
  column('when', 'When', { under: (row) => describe(row.expression) }, ({ expression, timezone }) => (
    <>
      <code class="num">{expression}</code> <span class="faint num">{timezone}</span>
    </>
  )),
  textColumn('type', 'Job', { id: 'job', wide: true, under: ({ queue }) => <>in {<QueueLink name={queue} />}</> }),
  timeColumn('last_run_at', 'Last run', { sort: ({ last_run_at: at }) => -time(at, 0) }),
  timeColumn(
    'next_run_at',
    'Next run',
    { sort: ({ next_run_at: at }) => time(at, Number.MAX_SAFE_INTEGER) },
    ({ next_run_at: at, enabled }) => <Time at={enabled ? at : null} />,
  ),
  countColumn('run_count', 'Runs', { wide: true }),
  countColumn('skipped_count', 'Skipped', { wide: true, tone: 'amber' }),
];
