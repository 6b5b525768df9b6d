import { useState } from 'preact/hooks';
import type { Webhook } from '../../../contract/webhooks';
import { Boxes, Check, Field, FormDialog, SelectField, TextField, textIn } from '../../components/form';
import { SecretDialog } from '../../components/json';
import { api } from '../../core/api';
import { EVENT_KINDS } from '../../core/event-names';
import { openAside } from '../../core/router';
import { FORMS, formOf, SUBSCRIPTIONS, subscriptionPath } from './types';

const wordsOf = (text: FormDataEntryValue | null) =>
  String(text ?? '')
    .split(/[\s,]+/)
    .filter(Boolean);

export const SECRET = { name: 'Signing secret', label: 'secret' };

const FILTERS = [
  ['queues', 'queues', 'mail, reports'],
  ['types', 'job types', 'email.*'],
  ['groups', 'groups', 'vip-*'],
] as const;

const templateText = (before: Webhook | undefined): string =>
  typeof before?.format === 'object' ? JSON.stringify(before.format.template, null, 2) : '{"text": "{{type}}"}';

/** The members for the format of what is sent. A key that is there already is not shown, and stays. */
function formatIn(data: FormData, form: keyof typeof FORMS, before: Webhook | undefined): object {
  const key = textIn(data, 'routing_key');
  if (form === 'event') return { format: null };
  if (form === 'template') {
    const text = textIn(data, 'template');
    const stays = typeof before?.format === 'object' && text === templateText(before);
    return stays ? {} : { format: { template: text } };
  }
  if (form === 'slack') return { format: form };
  return key === '' && before?.format === 'pagerduty' ? {} : { format: form, routing_key: key };
}

export function SubscriptionForm({ of: before, onSaved }: { of: Webhook | undefined; onSaved: () => void }) {
  const [events, setEvents] = useState<readonly string[]>(before?.events ?? []);
  const [secret, setSecret] = useState('');
  const [form, setForm] = useState<keyof typeof FORMS>(before ? formOf(before) : 'event');
  const [made, setMade] = useState('');
  const close = () => openAside({ edit: null, ...(made && { open: made, tab: null }) });

  const save = async (data: FormData) => {
    const words = FILTERS.map(([name]) => [name, wordsOf(data.get(name))] as const);
    const filter = Object.fromEntries(words.filter(([, some]) => some.length > 0));
    const own = textIn(data, 'secret');
    const url = textIn(data, 'url');
    const body = {
      // This key may see a part of it only.
      ...(url !== before?.url && { url }),
      events,
      ...formatIn(data, form, before),
      filter: Object.keys(filter).length > 0 ? filter : null,
    };
    if (before) {
      await api.patch(subscriptionPath(before.id), body);
      return 'Webhook saved.';
    }
    const answer = await api.post<{ id: string; secret: string }>(SUBSCRIPTIONS, {
      ...body,
      ...(own !== '' && { secret: own }),
    });
    setMade(answer.id);
    setSecret(answer.secret);
    return undefined;
  };

  if (secret) return <SecretDialog title="Webhook created" text={secret} {...SECRET} onClose={close} />;
  return (
    <FormDialog
      title={before ? 'Edit the webhook' : 'New webhook'}
      wide
      action={before ? 'Save' : 'Create'}
      values={before && { url: before.url }}
      onSubmit={save}
      onDone={onSaved}
      disabled={events.length === 0}
    >
      <TextField
        {...{ name: 'url', label: 'URL', hint: 'An https URL of another server.' }}
        {...{ type: 'url', placeholder: 'https://', required: true }}
      />
      <Picker chosen={events} onChange={setEvents} />
      <div class="columns-2">
        {FILTERS.map(([name, what, placeholder]) => (
          <TextField
            key={name}
            name={name}
            label={`Only these ${what}`}
            hint="Empty: all."
            at={[`filter.${name}`]}
            value={before?.filter?.[name]?.join(', ')}
            placeholder={placeholder}
          />
        ))}
      </div>
      <SelectField label="Format" value={form} onChange={(name) => setForm(name as typeof form)} options={FORMS} />
      {form === 'pagerduty' && (
        <TextField
          name="routing_key"
          label="Routing key"
          hint={
            before?.format === 'pagerduty' ? 'Empty: keep the current one.' : 'The key of an Events API v2 integration.'
          }
        />
      )}
      {form === 'template' && (
        <Field label="Template" hint="JSON with placeholders such as {{data.job_id}}." at={['format.template']}>
          <textarea name="template" rows={5} spellcheck={false} defaultValue={templateText(before)} />
        </Field>
      )}
      {!before && <TextField name="secret" label="Secret" hint="Empty: a new one is generated." />}
    </FormDialog>
  );
}

function Picker(props: { chosen: readonly string[]; onChange: (chosen: readonly string[]) => void }) {
  const { chosen, onChange } = props;
  const toggle = (name: string, on: boolean) => {
    // All of a kind takes the place of its single ones.
    const kept = chosen.filter((one) => one !== name && !(name.endsWith('.*') && one.startsWith(name.slice(0, -1))));
    onChange(on ? [...kept, name] : kept);
  };
  return (
    <Boxes legend="Events" at={['events']} class="picker">
      {[...EVENT_KINDS].map(([kind, types]) => {
        const all = chosen.includes('*') || chosen.includes(`${kind}.*`);
        return (
          <div key={kind}>
            <Check class="all" checked={all} disabled={chosen.includes('*')} onChange={(on) => toggle(`${kind}.*`, on)}>
              <code>{kind}.*</code>
            </Check>
            <span>
              {types.map((type) => (
                <Check
                  key={type}
                  checked={all || chosen.includes(type)}
                  disabled={all}
                  onChange={(on) => toggle(type, on)}
                >
                  <code>{type.slice(kind.length + 1)}</code>
                </Check>
              ))}
            </span>
          </div>
        );
      })}
      <Check class="all" checked={chosen.includes('*')} onChange={(on) => onChange(on ? ['*'] : [])}>
        all events
      </Check>
    </Boxes>
  );
}
