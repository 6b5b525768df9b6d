/** Makes a subscription, or changes one. */
import { useState } from 'preact/hooks';
import type { Webhook } from '../../../contract/webhooks';
import { errorAt, Field, Form, textIn } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { api } from '../../core/api';
import { openAside } from '../../core/aside';
import { toast } from '../../core/dialogs';
import { Picker } from './picker';
import { Secret } from './secret';
import { FORMS, formOf, SUBSCRIPTIONS, subscriptionPath } from './types';

const wordsOf = (text: FormDataEntryValue | null) =>
  String(text ?? '')
    .split(/[\s,]+/)
    .filter(Boolean);

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
    const words = ['queues', 'types', 'groups'].map((name) => [name, wordsOf(data.get(name))] as const);
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
      toast('Webhook saved.');
      onSaved();
      openAside({ edit: null });
      return;
    }
    const answer = await api.post<{ id: string; secret: string }>(SUBSCRIPTIONS, {
      ...body,
      ...(own !== '' && { secret: own }),
    });
    setMade(answer.id);
    setSecret(answer.secret);
    onSaved();
  };

  if (secret) {
    return (
      <Dialog title="Webhook created" wide onClose={close}>
        <Secret text={secret} />
        <div class="actions">
          <button type="button" class="primary" onClick={close}>
            I have copied it
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={before ? 'Edit the webhook' : 'New webhook'} wide onClose={close}>
      <Form action={before ? 'Save' : 'Create'} onSubmit={save} onCancel={close} disabled={events.length === 0}>
        {(error) => (
          <>
            <Field label="URL" hint="An https URL of another server." error={errorAt(error, 'url')}>
              <input
                name="url"
                type="url"
                required
                placeholder="https://"
                defaultValue={before?.url ?? ''}
                autocomplete="off"
                spellcheck={false}
              />
            </Field>
            <Picker chosen={events} onChange={setEvents} error={errorAt(error, 'events')} />
            <div class="columns-2">
              <Field label="Only these queues" hint="Empty: all." error={errorAt(error, 'filter.queues')}>
                <input
                  name="queues"
                  defaultValue={before?.filter?.queues?.join(', ') ?? ''}
                  placeholder="mail, reports"
                  autocomplete="off"
                  spellcheck={false}
                />
              </Field>
              <Field label="Only these job types" hint="Empty: all." error={errorAt(error, 'filter.types')}>
                <input
                  name="types"
                  defaultValue={before?.filter?.types?.join(', ') ?? ''}
                  placeholder="email.*"
                  autocomplete="off"
                  spellcheck={false}
                />
              </Field>
              <Field label="Only these groups" hint="Empty: all." error={errorAt(error, 'filter.groups')}>
                <input
                  name="groups"
                  defaultValue={before?.filter?.groups?.join(', ') ?? ''}
                  placeholder="vip-*"
                  autocomplete="off"
                  spellcheck={false}
                />
              </Field>
            </div>
            <Field label="Format">
              <select value={form} onChange={({ currentTarget }) => setForm(currentTarget.value as typeof form)}>
                {Object.entries(FORMS).map(([name, label]) => (
                  <option key={name} value={name}>
                    {label}
                  </option>
                ))}
              </select>
            </Field>
            {form === 'pagerduty' && (
              <Field
                label="Routing key"
                hint={
                  before?.format === 'pagerduty'
                    ? 'Empty: keep the current one.'
                    : 'The key of an Events API v2 integration.'
                }
                error={errorAt(error, 'routing_key')}
              >
                <input name="routing_key" autocomplete="off" spellcheck={false} />
              </Field>
            )}
            {form === 'template' && (
              <Field
                label="Template"
                hint="JSON with placeholders such as {{data.job_id}}."
                error={errorAt(error, 'format.template')}
              >
                <textarea name="template" rows={5} spellcheck={false} defaultValue={templateText(before)} />
              </Field>
            )}
            {!before && (
              <Field label="Secret" hint="Empty: a new one is generated." error={errorAt(error, 'secret')}>
                <input name="secret" autocomplete="off" spellcheck={false} />
              </Field>
            )}
          </>
        )}
      </Form>
    </Dialog>
  );
}
