/** The settings of a queue: its own, what the code declares, and what is in effect. */
import { useContext } from 'preact/hooks';
import type { QueueConfig, QueueSettings } from '../../../contract/queues';
import { Field, Form, Refusal, SelectField, TextField } from '../../components/form';
import { named } from '../../components/list';
import { Loaded, Skeleton } from '../../components/page';
import { Badge } from '../../components/text';
import { api, can, useGet } from '../../core/api';
import { toast } from '../../core/dialogs';
import { segment } from '../../core/router';
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

const Groups = (props: { of: QueueSettings; isReadOnly?: boolean }) => (
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

interface SettingProps {
  field: SettingField;
  of: QueueSettings;
  isFirst: boolean;
}

function Setting({ field: setting, of: { config, declared, effective }, isFirst }: SettingProps) {
  const error = useContext(Refusal);
  const { path, label, hint, kind, choices = [] } = setting;
  const [own, code] = [config, declared].map((layer) => textOf(settingAt(layer, path)));
  const holds = wordsOf(setting, settingAt(effective, path));
  const source = own !== '' ? 'own' : code !== '' ? 'declared' : holds !== '' ? 'inherited' : undefined;
  const wrong = error?.details.field;
  const isWrong =
    typeof wrong === 'string' &&
    (wrong === path || wrong.startsWith(`${path}.`) || (isFirst && path.startsWith(`${wrong}.`)));
  const field = {
    ...{ label, name: path, value: own, error: isWrong ? error?.message : undefined },
    hint: (
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
    ),
  };
  if (kind === 'choice') {
    const inherited = holds !== '' && own === '' ? `inherited: ${holds}` : 'inherited';
    return <SelectField {...field} options={{ '': inherited, ...named(choices) }} />;
  }
  const placeholder = holds === '' ? 'not set' : holds;
  if (kind !== 'json') {
    return <TextField {...field} placeholder={placeholder} inputMode={kind === 'number' ? 'decimal' : 'text'} />;
  }
  return (
    <Field {...field}>
      <textarea name={path} class="mono" rows={3} spellcheck={false} defaultValue={own} placeholder={placeholder} />
    </Field>
  );
}
