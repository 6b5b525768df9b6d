/** What destroys jobs: purging a queue, with a look before, and deleting it. */
import { useState } from 'preact/hooks';
import type { OperationPreview } from '../../../contract/common';
import type { PurgedByOperator, QueueDeletion } from '../../../contract/queues';
import { JOB_STATES } from '../../components/badge';
import { Boxes, Form, SelectField, TextField, textIn } from '../../components/form';
import { OperationProgress } from '../../components/progress';
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { confirm, failed, toast } from '../../core/dialogs';
import { counted, number } from '../../core/format';
import { navigate } from '../../core/router';
import type { QueueTab } from './tab';

export function DangerTab({ queue: { name }, reload }: QueueTab) {
  return (
    <div class="danger-parts">
      <Purge name={name} reload={reload} />
      <Delete name={name} />
    </div>
  );
}

const jobs = (count: number) => counted(count, 'job');

interface Operation {
  succeeded: number;
  completed: boolean;
  aborted?: boolean;
}

const PURGED = JOB_STATES.filter((state) => state !== 'active');

function Purge({ name, reload }: { name: string; reload: () => void }) {
  const path = `admin/queues/${segment(name)}/jobs`;
  const [running, setRunning] = useState<{ id: string; done: number; total: number }>();

  const purge = async (form: FormData) => {
    const age = textIn(form, 'older_than');
    const body = { states: form.getAll('states'), ...(age !== '' && { older_than: age }) };
    const { matched, matched_is_exact, by_state } = await api.del<OperationPreview>(path, {
      body: { ...body, dry_run: true },
    });
    if (matched === 0) {
      toast('No matching jobs: nothing to delete.');
      return;
    }
    const parts = Object.entries(by_state).map(([state, count]) => `${number(count)} ${state}`);
    const some = `${matched_is_exact ? '' : 'at least '}${jobs(matched)}`;
    const sure = await confirm({
      title: `Purge ${some}?`,
      text: `They are permanently deleted from ${name}: ${parts.join(', ')}.`,
      ...{ action: `Purge ${jobs(matched)}`, danger: true, typed: name },
    });
    if (!sure) return;
    const begun = await api.del<PurgedByOperator>(path, { body: { ...body, confirm: true }, query: { wait: 2 } });
    if (begun.completed) toast(`${jobs(begun.purged_count)} were deleted.`);
    else await follow(begun.operation_id, matched);
    reload();
  };

  /** The answer comes when it is over, or after some seconds with how far it came. */
  const follow = async (id: string, total: number) => {
    for (;;) {
      const seen = await api.get<Operation>(`admin/operations/${segment(id)}`, { wait: 2 });
      setRunning({ id, total, done: seen.succeeded });
      if (!seen.completed) continue;
      setRunning(undefined);
      toast(`${jobs(seen.succeeded)} were deleted${seen.aborted ? '; the purge was stopped' : ''}.`);
      return;
    }
  };

  return (
    <section class="card">
      <h2>Purge</h2>
      <p class="faint">Deletes jobs permanently, after showing how many match. Running jobs cannot be purged.</p>
      <Form action="Count and purge" danger onSubmit={purge}>
        <Boxes legend="States" at={['states']} class="field bare">
          <span class="which-states">
            {PURGED.map((state) => (
              <label key={state}>
                <input type="checkbox" name="states" value={state} defaultChecked={state === 'completed'} />
                {state}
              </label>
            ))}
          </span>
        </Boxes>
        <TextField
          name="older_than"
          label="Older than"
          hint="For example 1d or 12h, since their end or their enqueue. Empty: any age."
          placeholder="any age"
        />
      </Form>
      {running && (
        <OperationProgress
          label="Purging"
          done={running.done}
          total={running.total}
          onAbort={() => api.post(`admin/operations/${segment(running.id)}/abort`).catch(failed)}
        />
      )}
    </section>
  );
}

const STRATEGIES = {
  reject: 'prevent the deletion',
  discard: 'are deleted, including running ones',
  move: 'move to another queue',
};

function Delete({ name }: { name: string }) {
  const [strategy, setStrategy] = useState<string>('reject');
  const remove = async (form: FormData) => {
    const target = textIn(form, 'target_queue');
    const sure = await confirm({
      title: `Delete ${name}?`,
      text: 'The queue is deleted with its settings and its ended jobs.',
      ...{ action: 'Delete the queue', danger: true, typed: name },
    });
    if (!sure) return;
    const { state } = await api.del<QueueDeletion>(`queues/${segment(name)}`, {
      body: { strategy, ...(strategy === 'move' && { target_queue: target }) },
    });
    toast(state === 'deleted' ? `${name} is deleted.` : `${name} is being deleted in the background.`);
    navigate(href('queues'));
  };
  return (
    <section class="card">
      <h2>Delete the queue</h2>
      <p class="faint">The queue stops accepting and handing out jobs at once.</p>
      <Form action="Delete the queue" danger onSubmit={remove}>
        <SelectField
          label="Jobs that have not ended"
          at={['strategy']}
          value={strategy}
          onChange={setStrategy}
          options={STRATEGIES}
        />
        {strategy === 'move' && <TextField name="target_queue" label="To the queue" required />}
      </Form>
    </section>
  );
}
