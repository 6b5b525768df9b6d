import type { MaintenanceState } from '../../../contract/maintenance';
import { FormDialog, TextField, textIn } from '../../components/form';
import { Icon } from '../../components/icon';
import { Button, Foreign, Time } from '../../components/text';
import { api, can, type Resource, useGet } from '../../core/api';
import { useNow } from '../../core/clock';
import { askAndAct } from '../../core/dialogs';
import { query, setQuery } from '../../core/router';

const PATH = 'admin/system/maintenance';

export const useMaintenance = (): Resource<MaintenanceState> => useGet<MaintenanceState>(PATH);

/** Does it hold now? No event reports its end. */
const isOn = ({ data }: Resource<MaintenanceState>, now: number): boolean =>
  data?.enabled === true && (data.ends_at === null || Date.parse(data.ends_at) > now);

export function MaintenanceBanner({ of: maintenance }: { of: Resource<MaintenanceState> }) {
  const now = useNow();
  const { data } = maintenance;
  if (!data || !isOn(maintenance, now)) return null;
  return (
    <div class="banner" role="status">
      <Icon name="pause" size={18} />
      <div>
        <strong>Maintenance</strong> since <Time at={data.started_at} />
        {data.ends_at ? <Time before=", ends " at={data.ends_at} /> : ', without an end'}. No job starts.{' '}
        {data.reason && <Foreign before="Reason: ">{data.reason}</Foreign>}
      </div>
      {can('admin:write') && <Button label="End maintenance" onClick={() => end(maintenance)} />}
    </div>
  );
}

async function end(maintenance: Resource<MaintenanceState>): Promise<void> {
  const text = 'Waiting jobs start again in all queues, and schedules fire.';
  const question = { title: 'End maintenance?', text, action: 'End maintenance' };
  const work = () => api.post(PATH, { enabled: false });
  if (await askAndAct(question, work, 'Maintenance has ended.')) maintenance.reload();
}

export function MaintenanceButton({ of: maintenance }: { of: Resource<MaintenanceState> }) {
  const now = useNow();
  if (!can('admin:write')) return null;
  const start = async (form: FormData) => {
    const [reason, duration] = [textIn(form, 'reason'), textIn(form, 'duration')];
    await api.post(PATH, { enabled: true, ...(reason && { reason }), ...(duration && { duration }) });
    return 'No job starts until maintenance ends.';
  };
  return (
    <>
      {isOn(maintenance, now) ? (
        <Button label="End maintenance" onClick={() => end(maintenance)} />
      ) : (
        <Button label="Start maintenance" onClick={() => setQuery({ do: 'maintenance' })} />
      )}
      {query('do') === 'maintenance' && (
        <FormDialog
          {...{ title: 'Start maintenance', action: 'Start maintenance' }}
          onSubmit={start}
          onDone={maintenance.reload}
          onClose={() => setQuery({ do: null })}
        >
          <p class="note">Running jobs continue and new ones are accepted; no job starts and no schedule fires.</p>
          <TextField name="reason" label="Reason" hint="Shown with jobs that wait because of it." maxLength={1000} />
          <TextField
            name="duration"
            label="For"
            hint="For example 30m or 2h. Empty: until an operator ends it."
            placeholder="no end"
          />
        </FormDialog>
      )}
    </>
  );
}
