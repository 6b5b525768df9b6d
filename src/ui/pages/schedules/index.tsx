/** All schedules: when each fires next, how it went, whether it is stopped. */

import { useState } from 'preact/hooks';
import type { CronItems, CronStatus } from '../../../contract/cron';
import { Icon } from '../../components/icon';
import { FilterChips, Filters, Pager, SelectFilter, TextFilter } from '../../components/list';
import { PageHead } from '../../components/page';
import shared from '../../components/shared.css' with { type: 'text' };
import { Empty, Loaded } from '../../components/state';
import { actionsColumn, type Column, DataTable } from '../../components/table';
import { Count, Foreign, QueueLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { aside, openAside } from '../../core/aside';
import { useLive } from '../../core/live';
import { useResource } from '../../core/resource';
import { pageNumber, query } from '../../core/router';
import { can } from '../../core/session';
import { adopt } from '../../core/styles';
import { describe } from './describe';
import { ScheduleForm } from './form';
import { ScheduleDrawer } from './one';
import css from './page.css' with { type: 'text' };
import { ScheduleState } from './state';
import { pathOf, runNow, toggle } from './types';

adopt(shared);
adopt(css);

const PER_PAGE = 100;

/** With more schedules in a batch than this, the list is loaded once instead. */
const MAX_ASKED = 12;

export default function SchedulesPage() {
  const page = pageNumber();
  const schedules = useResource((signal) => api.get<CronItems>('crons', { page, per_page: PER_PAGE }, signal), [page]);
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const [fired, setFired] = useState(0);

  const ask = async (name: string) => {
    try {
      const found = await api.get<CronStatus>(pathOf(name));
      schedules.update((list) => ({ ...list, items: list.items.map((one) => (one.name === name ? found : one)) }));
    } catch {
      schedules.reload();
    }
  };
  useLive('all', {
    onEvents: (events) => {
      const names = new Set(
        events.flatMap(({ event, data }) => (event.startsWith('cron.') ? [String(data.cron_name)] : [])),
      );
      if (names.size === 0) return;
      setChanged(names);
      const known = new Set(schedules.data?.items.map(({ name }) => name));
      const shown = [...names].filter((name) => known.has(name));
      if (shown.length < names.size || shown.length > MAX_ASKED) schedules.reload();
      else for (const name of shown) ask(name);
    },
    onGap: schedules.reload,
  });

  const changedHere = () => {
    schedules.reload();
    setFired((count) => count + 1);
  };
  const mayWrite = can('data:write');
  return (
    <div class="schedules-page">
      <PageHead title="Schedules" sub={schedules.data && <>{schedules.data.pagination.total} in all</>}>
        {mayWrite && (
          <button type="button" class="primary" onClick={() => openAside({ edit: ':new' })}>
            <Icon name="plus" size={14} /> New schedule
          </button>
        )}
      </PageHead>
      <Filters>
        <TextFilter name="q" label="Filter by name, queue or type" />
        <SelectFilter
          name="status"
          label="State"
          all="Any state"
          options={[
            ['active', 'Active'],
            ['paused', 'Paused'],
            ['completed', 'Completed'],
          ]}
        />
      </Filters>
      <FilterChips names={{ q: 'Text', status: 'State' }} />
      <Loaded of={schedules}>
        {({ items, pagination }) => (
          <>
            <DataTable
              label="Schedules"
              rows={items.filter(isWanted)}
              columns={columns(changedHere)}
              rowKey={({ name }) => name}
              rowHref={({ name }) => aside({ open: name })}
              changed={changed}
              keys={
                mayWrite
                  ? {
                      p: { label: 'Pause or resume', run: async (row) => (await toggle(row)) && changedHere() },
                      n: { label: 'Run now', run: async (row) => (await runNow(row)) && changedHere() },
                    }
                  : {}
              }
              empty={items.length === 0 ? <NoSchedules /> : <Empty icon="search" title="No matching schedules" />}
            />
            <Pager total={pagination.total} perPage={PER_PAGE} />
          </>
        )}
      </Loaded>
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

function columns(onChanged: () => void): Column<CronStatus>[] {
  const time = (at: string | null, otherwise: number) => (at === null ? otherwise : Date.parse(at));
  return [
    {
      id: 'name',
      label: 'Schedule',
      sort: ({ name }) => name,
      render: ({ name, description }) => (
        <>
          <a href={aside({ open: name })}>
            <Foreign>{name}</Foreign>
          </a>
          {description && (
            <small class="under">
              <Foreign>{description}</Foreign>
            </small>
          )}
        </>
      ),
    },
    { id: 'status', label: 'State', sort: ({ status }) => status, render: (row) => <ScheduleState of={row} /> },
    {
      id: 'when',
      label: 'When',
      render: ({ expression, timezone }) => (
        <>
          <code class="num">{expression}</code> <span class="faint num">{timezone}</span>
          <small class="under">{describe(expression)}</small>
        </>
      ),
    },
    {
      id: 'job',
      label: 'Job',
      wide: true,
      sort: ({ type }) => type,
      render: ({ type, queue }) => (
        <>
          <Foreign>{type}</Foreign>
          <small class="under">
            in <QueueLink name={queue} />
          </small>
        </>
      ),
    },
    {
      id: 'last',
      label: 'Last run',
      end: true,
      sort: ({ last_run_at: at }) => -time(at, 0),
      render: ({ last_run_at: at }) => <Time at={at} />,
    },
    {
      id: 'next',
      label: 'Next run',
      end: true,
      sort: ({ next_run_at: at }) => time(at, Number.MAX_SAFE_INTEGER),
      render: ({ next_run_at: at, enabled }) => <Time at={enabled ? at : null} />,
    },
    {
      id: 'runs',
      label: 'Runs',
      end: true,
      wide: true,
      sort: ({ run_count }) => run_count,
      render: ({ run_count }) => <Count value={run_count} />,
    },
    {
      id: 'skipped',
      label: 'Skipped',
      end: true,
      wide: true,
      sort: ({ skipped_count }) => skipped_count,
      render: ({ skipped_count }) => (
        <span class={skipped_count > 0 ? 'amber' : ''}>
          <Count value={skipped_count} />
        </span>
      ),
    },
    ...actionsColumn(can('data:write'), (row: CronStatus) => (
      <span class="row-actions">
        <button
          type="button"
          class="small"
          aria-label={`Run now: ${row.name}`}
          onClick={async () => (await runNow(row)) && onChanged()}
        >
          Run now
        </button>
        <button
          type="button"
          class="small"
          aria-label={`${row.enabled ? 'Pause' : 'Resume'} ${row.name}`}
          onClick={async () => (await toggle(row)) && onChanged()}
        >
          {row.enabled ? 'Pause' : 'Resume'}
        </button>
      </span>
    )),
  ];
}

function NoSchedules() {
  return (
    <Empty icon="schedules" title="No schedules yet">
      A schedule enqueues a job repeatedly. Create one here, or with <code>POST /ojs/v1/cron</code>.
    </Empty>
  );
}
