/** Maintenance of the whole deployment: what holds, and its beginning and end. */
import type { MaintenanceState } from '../../../contract/maintenance';
import { errorAt, Field, Form, textIn } from '../../components/form';
import { Icon } from '../../components/icon';
import { Dialog } from '../../components/overlays';
import { Foreign, Time } from '../../components/text';
import { api } from '../../core/api';
import { useNow } from '../../core/clock';
import { act, confirm, toast } from '../../core/dialogs';
import { type Resource, useResource } from '../../core/resource';
import { query, setQuery } from '../../core/router';
import { can } from '../../core/session';

const PATH = 'admin/system/maintenance';

export function useMaintenance(): Resource<MaintenanceState> {
  return useResource((signal) => api.get<MaintenanceState>(PATH, {}, signal), []);
}

/** Does it hold now? No event reports its end. */
function isOn({ data }: Resource<MaintenanceState>, now: number): boolean {
  return data?.enabled === true && (data.ends_at === null || Date.parse(data.ends_at) > now);
}

export function MaintenanceBanner({ of: maintenance }: { of: Resource<MaintenanceState> }) {
  const now = useNow();
  const { data } = maintenance;
  if (!data || !isOn(maintenance, now)) return null;
  const end = async () => {
    const sure = await confirm({
      title: 'End maintenance?',
      text: 'Waiting jobs start again in all queues, and schedules fire.',
      action: 'End maintenance',
    });
    if (sure && (await act(() => api.post(PATH, { enabled: false }), 'Maintenance has ended.'))) {
      maintenance.reload();
    }
  };
  return (
    <div class="banner" role="status">
      <Icon name="pause" size={18} />
      <div>
        <strong>Maintenance</strong> since <Time at={data.started_at} />
        {data.ends_at ? (
          <>
            , ends <Time at={data.ends_at} />
          </>
        ) : (
          ', without an end'
        )}
        . No job starts.{' '}
        {data.reason && (
          <>
            Reason: <Foreign>{data.reason}</Foreign>
          </>
        )}
      </div>
      {can('admin:write') && (
        <button type="button" onClick={end}>
          End maintenance
        </button>
      )}
    </div>
  );
}

export function MaintenanceButton({ of: maintenance }: { of: Resource<MaintenanceState> }) {
  const now = useNow();
  if (!can('admin:write')) return null;
  const close = () => setQuery({ do: null });
  return (
    <>
      {!isOn(maintenance, now) && (
        <button type="button" onClick={() => setQuery({ do: 'maintenance' })}>
          Start maintenance
        </button>
      )}
      {query('do') === 'maintenance' && (
        <Dialog title="Start maintenance" onClose={close}>
          <Form
            action="Start maintenance"
            onCancel={close}
            onSubmit={async (form) => {
              const [reason, duration] = [textIn(form, 'reason'), textIn(form, 'duration')];
              await api.post(PATH, { enabled: true, ...(reason && { reason }), ...(duration && { duration }) });
              toast('No job starts until maintenance ends.');
              maintenance.reload();
              close();
            }}
          >
            {(error) => (
              <>
                <p class="note">
                  Running jobs continue and new ones are accepted; no job starts and no schedule fires.
                </p>
                <Field label="Reason" hint="Shown with jobs that wait because of it." error={errorAt(error, 'reason')}>
                  <input name="reason" maxLength={1000} autocomplete="off" />
                </Field>
                <Field
                  label="For"
                  hint="For example 30m or 2h. Empty: until an operator ends it."
                  error={errorAt(error, 'duration')}
                >
                  <input name="duration" placeholder="no end" autocomplete="off" />
                </Field>
              </>
            )}
          </Form>
        </Dialog>
      )}
    </>
  );
}
