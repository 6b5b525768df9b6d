/** What destroys jobs: purging a queue, with a look before, and deleting it. */
import { useState } from 'preact/hooks';
import type { PurgedByOperator, QueueDeletion } from '../../../contract/queues';
import { Boxes, Form, SelectField, TextField, textIn } from '../../components/form';
import { type Preview, type StartedOperation, useOperation } from '../../components/operation';
import { JOB_STATES } from '../../components/text';
import { api } from '../../core/api';
import { confirm, toast } from '../../core/dialogs';
import { number } from '../../core/format';
import { href, navigate, segment } from '../../core/router';
import type { QueueTab } from './tab';

export const DangerTab = ({ queue: { name }, reload }: QueueTab) => (
  <div class="danger-parts">
    <Purge name={name} reload={reload} />
    <Delete name={name} />
  </div>
);

/** Those that run cannot be purged. */
export const PURGED = JOB_STATES.filter((state) => state !== 'active');

/** Deletes jobs of a queue that do not run. @param filter which, as the API takes it */
export function purgeOf(queue: string, filter: Record<string, unknown>): StartedOperation {
  const path = `admin/queues/${segment(queue)}/jobs`;
  return {
    ...{ verb: 'Purge', doing: 'Purging', done: 'were deleted', danger: true },
    text: 'They are deleted with their history, those that wait and those that have ended. This cannot be undone.',
    preview: () => api.del<Preview>(path, { body: { ...filter, dry_run: true } }),
    async begin() {
      const begun = await api.del<PurgedByOperator>(path, { body: { ...filter, confirm: true }, query: { wait: 1 } });
      return { ...begun, succeeded: begun.purged_count, skipped: 0, failed: 0 };
    },
  };
}

function Purge({ name, reload }: { name: string; reload: () => void }) {
  const [begin, dialog] = useOperation(reload);
  const count = async (form: FormData) => {
    const age = textIn(form, 'older_than');
    const purge = purgeOf(name, { states: form.getAll('states'), ...(age !== '' && { older_than: age }) });
    const found = await purge.preview();
    if (found.matched === 0) {
      toast('No matching jobs: nothing to delete.');
      return;
    }
    const parts = Object.entries(found.by_state).map(([state, some]) => `${number(some)} ${state}`);
    const text = `They are permanently deleted from ${name}: ${parts.join(', ')}.`;
    begin({ ...purge, text, typed: name, preview: async () => ({ ...found, by_state: {}, by_queue: {} }) });
  };
  return (
    <section class="card">
      <h2>Purge</h2>
      <p class="faint">Deletes jobs permanently, after showing how many match. Running jobs cannot be purged.</p>
      <Form action="Count and purge" danger onSubmit={count}>
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
      {dialog}
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
