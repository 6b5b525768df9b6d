import { useEffect, useState } from 'preact/hooks';
import type { WorkflowList, WorkflowStatus, WorkflowSummary } from '../../../contract/workflows';
import { FilterBar, Newer } from '../../components/list';
import { Empty, PageHead } from '../../components/page';
import { Collection, type Column, column, timeColumn } from '../../components/table';
import { Count, Duration, IdLink, Link } from '../../components/text';
import { api, can, useGet } from '../../core/api';
import { useNow } from '../../core/clock';
import { useListUpdates } from '../../core/list-updates';
import type { LiveEvent } from '../../core/live';
import { href, pageNumber, query, segment } from '../../core/router';
import { cancelWorkflow } from '../workflow/actions';
import { Done, lastedOf, WorkflowState } from '../workflow/state';

const PER_PAGE = 50;
const STATES = { running: 'Running', completed: 'Completed', failed: 'Failed', cancelled: 'Cancelled' };

export default function WorkflowsPage() {
  const page = pageNumber();
  const state = query('state');
  const workflows = useGet<WorkflowList>('workflows', { page, per_page: PER_PAGE, state });
  const [newer, setNewer] = useState(0);
  const { changed, ask } = useListUpdates<WorkflowSummary, WorkflowList, Partial<WorkflowSummary>>(workflows, {
    keyOf: ({ id }) => id,
    about: ({ event, data }) => (event.startsWith('workflow.') ? String(data.workflow_id) : undefined),
    ask: progressOf,
    isNew: (ids, events) => {
      const isStart = ({ event, data }: LiveEvent) =>
        event === 'workflow.started' && ids.includes(String(data.workflow_id));
      const started = page > 1 ? 0 : events.filter(isStart).length;
      const isFirst = workflows.data?.items.length === 0;
      if (!isFirst) setNewer((count) => count + started);
      return isFirst && started > 0;
    },
    onGap: () => setNewer(0),
  });
  const runs = workflows.data?.items.filter((one) => one.state === 'running' && one.completed_count === undefined);
  const unknown = runs?.map(({ id }) => id).join();
  useEffect(() => {
    for (const id of unknown ? unknown.split(',') : []) ask(id);
  }, [unknown]);

  const show = () => {
    setNewer(0);
    workflows.reload();
  };
  return (
    <>
      <PageHead title="Workflows" sub={workflows.data && <>{workflows.data.total} in all</>} />
      <FilterBar of={[{ name: 'state', label: 'State', choice: ['Any state', STATES] }]} />
      <Newer count={newer} onShow={show} />
      <Collection
        of={workflows}
        label="Workflows"
        columns={COLUMNS}
        rowKey={({ id }) => id}
        rowHref={hrefOf}
        changed={changed}
        actions={can('data:write') && [{ label: 'Cancel', key: ['c', 'Cancel'], keyOnly: true, run: cancelWorkflow }]}
        perPage={PER_PAGE}
        unmatched={state !== '' && `No workflow is ${state}`}
        empty={
          <Empty icon="workflows" title="No workflows yet">
            A workflow is a set of jobs that belong together: <code>POST /ojs/v1/workflows</code>, or the client's{' '}
            <code>workflows.start</code>.
          </Empty>
        }
      />
    </>
  );
}

/** The list is notified only of a workflow's end; progress is read from the workflow itself. */
async function progressOf(id: string): Promise<Partial<WorkflowSummary>> {
  const path = `workflows/${segment(id)}`;
  const { metadata, state, completed_at, cancelled_at } = await api.get<WorkflowStatus>(path);
  return {
    ...{ state, completed_count: metadata.completed_count, failed_count: metadata.failed_count },
    ...(completed_at && { completed_at }),
    ...(cancelled_at && { cancelled_at }),
  };
}

const hrefOf = ({ id }: WorkflowSummary) => href(`workflows/${segment(id)}`);

const COLUMNS: readonly Column<WorkflowSummary>[] = [
  column('name', 'Workflow', (row) =>
    row.name ? <Link to={hrefOf(row)} text={row.name} /> : <IdLink id={row.id} to={hrefOf(row)} />,
  ),
  column('state', 'State', ({ state }) => <WorkflowState state={state} />),
  column('form', 'Form', { wide: true }, ({ type }) => type),
  column('progress', 'Jobs completed', ({ completed_count: done, failed_count: failed = 0, job_count: total }) =>
    done === undefined ? <Count value={total} /> : <Done done={done} failed={failed} total={total} />,
  ),
  timeColumn('created_at', 'Started'),
  column('took', 'Took', { end: true }, (row) => <Took of={row} />),
];

const Took = ({ of: workflow }: { of: WorkflowSummary }) => <Duration ms={lastedOf(workflow, useNow())} />;
