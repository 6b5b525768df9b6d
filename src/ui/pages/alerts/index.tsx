/** Alert rules: a number of a queue, its bound, and whether it is beyond. */
import { useState } from 'preact/hooks';
import type { Alert } from '../../../contract/alerts';
import type { Webhook } from '../../../contract/webhooks';
import { NewButton } from '../../components/actions';
import { FormDialog, SelectField, TextField, textIn } from '../../components/form';
import { Empty, PageHead } from '../../components/page';
import { Collection, type Column, column, textColumn, timeColumn } from '../../components/table';
import { Badge, Foreign, GOOD, Link, type Look, None, QueueLink } from '../../components/text';
import { api, can, useGet } from '../../core/api';
import { askAndAct } from '../../core/dialogs';
import { span } from '../../core/format';
import { aside } from '../../core/router';
import '../webhooks/page.css';
import { ALERTS, alertPath, type List, METRICS, nameOf, SUBSCRIPTIONS, shownAs } from '../webhooks/types';
import { useAfterEvents } from '../webhooks/updates';

export default function AlertsPage() {
  const webhooks = useGet<List<Webhook>>(SUBSCRIPTIONS, { per_page: 100 });
  const subscriptions = webhooks.data?.items ?? [];
  const alerts = useGet<List<Alert>>(ALERTS, { per_page: 100 });
  useAfterEvents(alerts.reload, ({ event }) => event.startsWith('alert.'));
  const mayWrite = can('admin:write');
  return (
    <div class="webhooks-page">
      <PageHead title="Alerts" sub="Rules that notify your webhooks when a number of a queue passes a threshold.">
        <NewButton label="New alert rule" />
      </PageHead>
      <Collection
        of={alerts}
        label="Alert rules"
        columns={columns(subscriptions)}
        rowKey={({ id }) => id}
        nameOf={({ name }) => name}
        rowHref={mayWrite && (({ id }) => aside({ edit: id }))}
        actions={mayWrite && [{ label: 'Delete', run: remove }]}
        form={mayWrite && ((rule, onDone) => <AlertForm of={rule} subscriptions={subscriptions} onSaved={onDone} />)}
        empty={
          <Empty icon="failures" title="No alert rules yet">
            A rule notifies your webhooks when an error rate, an age or a number of jobs passes a threshold.
          </Empty>
        }
      />
    </div>
  );
}

function remove({ id, name }: Alert): Promise<boolean> {
  const text = 'No more notifications are sent. A firing alert is dropped.';
  const question = { title: `Delete ${name}?`, text, action: 'Delete the rule', danger: true };
  return askAndAct(question, () => api.del(alertPath(id)), `${name} is deleted.`);
}

const lastingOf = ({ for: time }: Alert) => (time === 'PT0S' ? 'at once' : `for ${span(time)}`);

function columns(subscriptions: readonly Webhook[]): Column<Alert>[] {
  const urls = new Map(subscriptions.map((one) => [one.id, nameOf(one)]));
  return [
    textColumn('name', 'Rule', ({ id, name }) => (
      <Link to={can('admin:write') ? aside({ edit: id }) : undefined} text={name} />
    )),
    textColumn('state', 'State', ({ state, active, queues }) => {
      const firing = queues.filter((one) => one.state === 'firing').map(({ queue }) => queue);
      const look: Look = state === 'firing' ? ['red', 'failures'] : GOOD;
      return (
        <>
          <Badge look={active ? look : ['neutral', 'pause']} text={active ? state : 'off'} />
          {queues.length > 1 && <small class="under">{firing.join(', ')}</small>}
        </>
      );
    }),
    column('when', 'Fires when', { under: lastingOf }, ({ metric, above }) => (
      <>
        {METRICS[metric] ?? metric}: above {shownAs(metric, above)}
      </>
    )),
    column('queue', 'Queue', ({ queue }) => (queue ? <QueueLink name={queue} /> : <span class="faint">each</span>)),
    column('value', 'Last value', { end: true }, ({ metric, last_value: value }) =>
      value === null ? <None /> : shownAs(metric, value),
    ),
    timeColumn('since', 'Since'),
    column('notifies', 'Notifies', { wide: true }, ({ subscription_id: id }) =>
      id ? <Foreign>{urls.get(id) ?? id}</Foreign> : <span class="faint">all subscribed to alert.*</span>,
    ),
  ];
}

function AlertForm(props: { of: Alert | undefined; subscriptions: readonly Webhook[]; onSaved: () => void }) {
  const { of: before, subscriptions, onSaved } = props;
  const [metric, setMetric] = useState<string>(before?.metric ?? 'error_rate');
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
    return 'The rule is saved.';
  };
  return (
    <FormDialog
      title={before ? 'Edit the alert rule' : 'New alert rule'}
      wide
      action={before ? 'Save' : 'Create'}
      values={before && { ...before, for: before.for === 'PT0S' ? '' : before.for }}
      onSubmit={save}
      onDone={onSaved}
    >
      <TextField name="name" label="Name" required maxLength={128} />
      <div class="columns-2">
        <SelectField label="Metric" at={['metric']} value={metric} onChange={setMetric} options={METRICS} />
        <TextField name="above" label="Fires above" hint={BOUNDS[metric]} required />
        <TextField name="for" label="Duration" hint="For example 5m. Empty: at once." />
        <TextField name="queue" label="Queue" hint="Empty: each queue separately." />
        <SelectField
          name="subscription_id"
          label="Notifies"
          options={{
            '': 'All subscribed to alert.*',
            ...Object.fromEntries(subscriptions.map((one) => [one.id, nameOf(one)])),
          }}
        />
      </div>
      <label class="check">
        <input name="active" type="checkbox" defaultChecked={before?.active ?? true} /> Active
      </label>
    </FormDialog>
  );
}

const BOUNDS: Readonly<Record<string, string>> = {
  error_rate: 'Fraction of the attempts of five minutes that failed, from 0 to 1',
  oldest_age: 'Seconds, or a duration such as 5m',
  depth: 'A number of jobs',
  dead_letters: 'A number of jobs',
};
