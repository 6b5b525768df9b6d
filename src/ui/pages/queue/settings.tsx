/** The settings of a queue: its own, what the code declares, and what is in effect. */
import { useContext } from 'preact/hooks';
import type { QueueConfig, QueueSettings } from '../../../contract/queues';
import { Badge } from '../../components/badge';
import { Field, Form, Refusal } from '../../components/form';
import { Loaded, Skeleton } from '../../components/page';
import { api, useGet } from '../../core/api';
import { toast } from '../../core/dialogs';
import { segment } from '../../core/router';
import { can } from '../../core/session';
import { changesOf, GROUPS, type SettingField, settingAt, textOf, wordsOf } from './fields';
import type { QueueTab } from './tab';

export function SettingsTab({ queue: { name }, reload }: QueueTab) {
  const settings = useGet<QueueSettings>(`queues/${segment(name)}/config`);
  const save = async (own: QueueConfig, form: FormData) => {
    const change = changesOf(own, form);
    if (!change) {
      toast('No changes.');
      return;
    }
    await api.put(`admin/queues/${segment(name)}/config`, change);
    toast('Settings saved.');
    settings.reload();
    reload();
  };
  return (
    <Loaded of={settings} loading={<Skeleton rows={6} height={120} />}>
      {(found) => (
        // Redrawn when other settings hold, with their values in the fields.
        <div class="settings-form" key={JSON.stringify(found)}>
          {can('admin:write') ? (
            <Form action="Save" onSubmit={(form) => save(found.config, form)}>
              <Groups of={found} />
            </Form>
          ) : (
            <Groups of={found} isReadOnly />
          )}
        </div>
      )}
    </Loaded>
  );
}

function Groups(props: { of: QueueSettings; isReadOnly?: boolean }) {
  return (
    <>
      <p class="note faint">
        An empty field uses the value declared in code, then the settings of all queues, then the built-in default.
      </p>
      {GROUPS.map(({ title, fields }) => (
        <fieldset key={title} disabled={props.isReadOnly}>
          <legend>{title}</legend>
          <div class="fields">
            {fields.map((field, index) => (
              <div key={field.path} class={field.wide ? 'wide-field' : ''}>
                <Setting field={field} {...props} isFirst={index === 0} />
              </div>
            ))}
          </div>
        </fieldset>
      ))}
    </>
  );
}

interface SettingProps {
  field: SettingField;
  of: QueueSettings;
  isFirst: boolean;
}

function Setting({ field, of: { config, declared, effective }, isFirst }: SettingProps) {
  const error = useContext(Refusal);
  const { path, label, hint, kind, choices = [] } = field;
  const [own, code] = [config, declared].map((layer) => textOf(settingAt(layer, path)));
  const holds = wordsOf(field, settingAt(effective, path));
  const source = own !== '' ? 'own' : code !== '' ? 'declared' : holds !== '' ? 'inherited' : undefined;
  const named = error?.details.field;
  const isWrong =
    typeof named === 'string' &&
    (named === path || named.startsWith(`${path}.`) || (isFirst && path.startsWith(`${named}.`)));
  const shared = { name: path, defaultValue: own, placeholder: holds === '' ? 'not set' : holds };
  return (
    <Field
      label={label}
      error={isWrong ? error?.message : undefined}
      hint={
        <>
          {source && (
            <>
              <Badge look={[source === 'own' ? 'blue' : source === 'declared' ? 'violet' : 'neutral']} text={source} />{' '}
              {source !== 'own' && <code>{holds}</code>}
              {' · '}
            </>
          )}
          {hint}
        </>
      }
    >
      {kind === 'choice' ? (
        <select name={path}>
          <option value="" selected={own === ''}>
            {holds !== '' && own === '' ? `inherited: ${holds}` : 'inherited'}
          </option>
          {choices.map((choice) => (
            <option key={choice} value={choice} selected={own === choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : kind === 'json' ? (
        <textarea {...shared} class="mono" rows={3} spellcheck={false} />
      ) : (
        <input {...shared} inputMode={kind === 'number' ? 'decimal' : 'text'} autocomplete="off" />
      )}
    </Field>
  );
}
