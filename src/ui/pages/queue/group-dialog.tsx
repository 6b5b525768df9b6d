/** Changes what limits one group of a queue, and removes its jobs. */
import type { PurgedByOperator, QueueGroup, QueueGroupDetail } from '../../../contract/queues';
import { JOB_STATES } from '../../components/badge';
import { errorAt, Field, Form, textIn } from '../../components/form';
import type { StartedOperation } from '../../components/operation';
import { Dialog } from '../../components/overlays';
import { Loaded } from '../../components/state';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { toast } from '../../core/dialogs';
import { useResource } from '../../core/resource';
import { type DryRun, previewOf } from '../jobs/operations';

export const pathOf = (queue: string, group: string) => `queues/${segment(queue)}/groups/${segment(group)}`;

/** Deletes the jobs of a group that do not run. */
export function purgeOf(queue: string, { group }: QueueGroup): StartedOperation {
  const path = `admin/queues/${segment(queue)}/jobs`;
  const body = { states: JOB_STATES.filter((state) => state !== 'active'), group };
  return {
    ...{ verb: 'Purge', doing: 'Purging', done: 'deleted', danger: true },
    text: 'They are deleted with their history, those that wait and those that have ended. This cannot be undone.',
    preview: async () => previewOf(await api.del<DryRun>(path, { body: { ...body, dry_run: true } })),
    async begin() {
      const begun = await api.del<PurgedByOperator>(path, { body: { ...body, confirm: true }, query: { wait: 1 } });
      return { ...begun, succeeded: begun.purged_count, skipped: 0, failed: 0 };
    },
  };
}

/** @param queue its name */
export function GroupDialog(props: { queue: string; of: QueueGroup; onClose: () => void; onDone: () => void }) {
  const { queue, of, onClose, onDone } = props;
  const path = pathOf(queue, of.group);
  const detail = useResource((signal) => api.get<QueueGroupDetail>(path, undefined, signal), [path]);
  const submit = async (form: FormData) => {
    const text = (name: string) => textIn(form, name);
    const number = (name: string) =>
      text(name) === '' ? null : /^\d+$/.test(text(name)) ? Number(text(name)) : text(name);
    const isRated = text('limit') !== '' || text('period') !== '';
    await api.put(path, {
      concurrency: number('concurrency'),
      rate: isRated ? { limit: number('limit'), period: text('period') } : null,
      max_waiting: number('max_waiting'),
      weight: number('weight'),
    });
    toast(`${of.group} has new limits.`);
    onDone();
    onClose();
  };
  return (
    <Dialog title={`Limit ${of.group}`} onClose={onClose}>
      <Loaded of={detail}>
        {({ override }) => (
          <Form action="Save" onSubmit={submit} onCancel={onClose}>
            {(error) => (
              <>
                <p class="note">An empty field means what the queue says of its groups.</p>
                <Field label="Running at once" error={errorAt(error, 'concurrency')}>
                  <input
                    name="concurrency"
                    inputMode="numeric"
                    autocomplete="off"
                    defaultValue={override?.concurrency ?? ''}
                  />
                </Field>
                <Field label="Starts" error={errorAt(error, 'rate', 'rate.limit')}>
                  <input
                    name="limit"
                    inputMode="numeric"
                    autocomplete="off"
                    defaultValue={override?.rate?.limit ?? ''}
                  />
                </Field>
                <Field
                  label="Per"
                  hint="second, minute, hour, day, or a duration such as 10s"
                  error={errorAt(error, 'rate.period')}
                >
                  <input name="period" autocomplete="off" defaultValue={override?.rate?.period ?? ''} />
                </Field>
                <Field label="Jobs that may wait" error={errorAt(error, 'max_waiting')}>
                  <input
                    name="max_waiting"
                    inputMode="numeric"
                    autocomplete="off"
                    defaultValue={override?.max_waiting ?? ''}
                  />
                </Field>
                <Field label="Weight" hint="Its share in the turns, 1 to 100" error={errorAt(error, 'weight')}>
                  <input name="weight" inputMode="numeric" autocomplete="off" defaultValue={override?.weight ?? ''} />
                </Field>
              </>
            )}
          </Form>
        )}
      </Loaded>
    </Dialog>
  );
}
