import type { QueueGroup, QueueGroupDetail } from '../../../contract/queues';
import { FormDialog, TextField, textIn } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { Loaded } from '../../components/page';
import { api, useGet } from '../../core/api';
import { segment } from '../../core/router';

export const pathOf = (queue: string, group: string) => `queues/${segment(queue)}/groups/${segment(group)}`;

export function GroupDialog(props: { queue: string; of: QueueGroup; onClose: () => void; onDone: () => void }) {
  const { queue, of, onClose, onDone } = props;
  const path = pathOf(queue, of.group);
  const detail = useGet<QueueGroupDetail>(path);
  const save = async (form: FormData) => {
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
    return `${of.group} has new limits.`;
  };
  const title = `Limit ${of.group}`;
  const { override } = detail.data ?? {};
  if (!detail.data) {
    return (
      <Dialog title={title} onClose={onClose}>
        <Loaded of={detail}>{() => null}</Loaded>
      </Dialog>
    );
  }
  const values = { ...override, ...override?.rate };
  return (
    <FormDialog title={title} action="Save" values={values} onSubmit={save} onDone={onDone} onClose={onClose}>
      <p class="note">An empty field uses the limit that the queue sets for its groups.</p>
      <TextField name="concurrency" label="Running at once" inputMode="numeric" />
      <TextField name="limit" label="Starts" at={['rate', 'rate.limit']} inputMode="numeric" />
      <TextField
        name="period"
        label="Per"
        hint="second, minute, hour, day, or a duration such as 10s"
        at={['rate.period']}
      />
      <TextField name="max_waiting" label="Jobs that may wait" inputMode="numeric" />
      <TextField name="weight" label="Weight" hint="Its share in the turns, 1 to 100" inputMode="numeric" />
    </FormDialog>
  );
}
