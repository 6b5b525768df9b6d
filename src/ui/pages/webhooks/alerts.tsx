/** Alert rules: a number of a queue, its bound, and whether it is beyond. */

import { useState } from 'preact/hooks';
import type { Alert } from '../../../contract/alerts';
import type { Webhook } from '../../../contract/webhooks';
import { Badge } from '../../components/badge';
import { errorAt, Field, Form, textIn } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { Empty, Loaded } from '../../components/state';
import { actionsColumn, type Column, DataTable } from '../../components/table';
import { Foreign, QueueLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { aside, openAside } from '../../core/aside';
import { act, confirm, toast } from '../../core/dialogs';
import { span } from '../../core/format';
import { useResource } from '../../core/resource';
import { query } from '../../core/router';
import { can } from '../../core/session';
import { ALERTS, alertPath, type List, METRICS, shownAs } from './types';
import { useAfterEvents } from './updates';

export function Alerts({ subscriptions }: { subscriptions: readonly Webhook[] }) {
  const alerts = useResource((signal) => api.get<List<Alert>>(ALERTS, { per_page: 100 }, signal), []);
  useAfterEvents(alerts.reload, ({ event }) => event.startsWith('alert.'));
  const mayWrite = can('admin:write');
  const remove = async ({ id, name }: Alert) => {
    const sure = await confirm({
      title: `Delete ${name}?`,
      text: 'No more notifications are sent. A firing alert is dropped.',
      action: 'Delete the rule',
      danger: true,
    });
    if (sure && (await act(() => api.del(alertPath(id)), `${name} is deleted.`))) alerts.reload();
  };
  return (
    <>
      <Loaded of={alerts}>
        {({ items }) => (
          <DataTable
            label="Alert rules"
            rows={items}
            columns={columns(subscriptions, remove)}
            rowKey={({ id }) => id}
            {...(mayWrite && { rowHref: ({ id }: Alert) => aside({ edit: id }) })}
            empty={
              <Empty icon="failures" title="No alert rules yet">
                A rule notifies your webhooks when an error rate, an age or a number of jobs passes a threshold.
              </Empty>
            }
          />
        )}
      </Loaded>
      {mayWrite && query('edit') && alerts.data && (
        <AlertForm
          of={alerts.data.items.find(({ id }) => id === query('edit'))}
          subscriptions={subscriptions}
          onSaved={alerts.reload}
        />
      )}
    </>
  );
}

function columns(subscriptions: readonly Webhook[], remove: (row: Alert) => void): Column<Alert>[] {
  const urls = new Map(subscriptions.map(({ id, url }) => [id, url]));
  return [
    {
      id: 'name',
      label: 'Rule',
      sort: ({ name }) => name,
      render: ({ id, name }) =>
        can('admin:write') ? (
          <a href={aside({ edit: id })}>
            <Foreign>{name}</Foreign>
          </a>
        ) : (
          <Foreign>{name}</Foreign>
        ),
    },
    {
      id: 'state',
      label: 'State',
      sort: ({ state }) => state,
      render: ({ state, active, queues }) => (
        <>
          {active ? (
            <Badge tone={state === 'firing' ? 'red' : 'green'} icon={state === 'firing' ? 'failures' : 'completed'}>
              {state}
            </Badge>
          ) : (
            <Badge icon="pause">off</Badge>
          )}
          {queues.length > 1 && (
            <small class="under">
              {queues
                .filter((one) => one.state === 'firing')
                .map(({ queue }) => queue)
                .join(', ')}
            </small>
          )}
        </>
      ),
    },
    {
      id: 'when',
      label: 'Fires when',
      render: ({ metric, above, for: time }) => (
        <>
          {METRICS[metric] ?? metric} is above {shownAs(metric, above)}
          <small class="under">{time === 'PT0S' ? 'at once' : `for ${span(time)}`}</small>
        </>
      ),
    },
    {
      id: 'queue',
      label: 'Queue',
      render: ({ queue }) => (queue ? <QueueLink name={queue} /> : <span class="faint">each</span>),
    },
    {
      id: 'value',
      label: 'Last value',
      end: true,
      render: ({ metric, last_value: value }) =>
        value === null ? <span class="faint">–</span> : shownAs(metric, value),
    },
    { id: 'since', label: 'Since', end: true, render: ({ since }) => <Time at={since} /> },
    {
      id: 'tells',
      label: 'Notifies',
      wide: true,
      render: ({ subscription_id: id }) =>
        id ? <Foreign>{urls.get(id) ?? id}</Foreign> : <span class="faint">all subscribed to alert.*</span>,
    },
    ...actionsColumn(can('admin:write'), (row: Alert) => (
      <button type="button" class="small" aria-label={`Delete ${row.name}`} onClick={() => remove(row)}>
        Delete
      </button>
    )),
  ];
}

function AlertForm(props: { of: Alert | undefined; subscriptions: readonly Webhook[]; onSaved: () => void }) {
  const { of: before, subscriptions, onSaved } = props;
  const [metric, setMetric] = useState<string>(before?.metric ?? 'error_rate');
  const close = () => openAside({ edit: null });
  const save = async (form: FormData) => {
    const text = (name: string) => textIn(form, name);
    const above = text('above');
    const body = {
      name: text('name'),
      queue: text('queue') || null,
      metric,
      above: Number.isNaN(Number(above)) ? above : Number(above),
      for: text('for') || null,
      subscription_id: text('subscription_id') || null,
      active: form.get('active') === 'on',
    };
    if (before) await api.patch(alertPath(before.id), body);
    else await api.post(ALERTS, body);
    toast('The rule is saved.');
    onSaved();
    close();
  };
  return (
    <Dialog title={before ? 'Edit the alert rule' : 'New alert rule'} wide onClose={close}>
      <Form action={before ? 'Save' : 'Create'} onSubmit={save} onCancel={close}>
        {(error) => (
          <>
            <Field label="Name" error={errorAt(error, 'name')}>
              <input name="name" required maxLength={128} defaultValue={before?.name ?? ''} autocomplete="off" />
            </Field>
            <div class="columns-2">
              <Field label="Metric" error={errorAt(error, 'metric')}>
                <select value={metric} onChange={({ currentTarget }) => setMetric(currentTarget.value)}>
                  {Object.entries(METRICS).map(([option, words]) => (
                    <option key={option} value={option}>
                      {words}
                    </option>
                  ))}
                </select>
              </Field>
              <Field label="Fires above" hint={BOUNDS[metric]} error={errorAt(error, 'above')}>
                <input name="above" required defaultValue={before?.above ?? ''} autocomplete="off" />
              </Field>
              <Field label="Duration" hint="For example 5m. Empty: at once." error={errorAt(error, 'for')}>
                <input name="for" defaultValue={before && before.for !== 'PT0S' ? before.for : ''} autocomplete="off" />
              </Field>
              <Field label="Queue" hint="Empty: each queue separately." error={errorAt(error, 'queue')}>
                <input name="queue" defaultValue={before?.queue ?? ''} autocomplete="off" spellcheck={false} />
              </Field>
              <Field label="Notifies" error={errorAt(error, 'subscription_id')}>
                <select name="subscription_id" defaultValue={before?.subscription_id ?? ''}>
                  <option value="">All subscribed to alert.*</option>
                  {subscriptions.map(({ id, url }) => (
                    <option key={id} value={id} selected={id === before?.subscription_id}>
                      {url}
                    </option>
                  ))}
                </select>
              </Field>
            </div>
            <label class="check">
              <input name="active" type="checkbox" defaultChecked={before?.active ?? true} /> Active
            </label>
          </>
        )}
      </Form>
    </Dialog>
  );
}

const BOUNDS: Readonly<Record<string, string>> = {
  error_rate: 'Fraction of the attempts of five minutes that failed, from 0 to 1',
  oldest_age: 'Seconds, or a duration such as 5m',
  depth: 'A number of jobs',
  dead_letters: 'A number of jobs',
};
