/** API keys made at run time: created, rotated and revoked here. A secret is shown once. */
import { useState } from 'preact/hooks';
import type { ApiKey, ApiKeyCreated, ApiKeyList } from '../../../contract/keys';
import { NewButton } from '../../components/actions';
import { FormDialog, SelectField, TextField, textIn } from '../../components/form';
import { SecretDialog } from '../../components/json';
import { Empty, Section } from '../../components/page';
import { Collection, type Column, column, textColumn, timeColumn } from '../../components/table';
import { Badge, Words } from '../../components/text';
import { api, useGet } from '../../core/api';
import { askAndAct } from '../../core/dialogs';
import { openAside, segment } from '../../core/router';

const KEYS = 'admin/keys';
const pathOf = (id: string) => `${KEYS}/${segment(id)}`;
const ROLES = { viewer: 'viewer', operator: 'operator', admin: 'admin' };
const BOUNDS = [
  ['queues', 'Queues', 'mail, sms-*'],
  ['types', 'Job types', 'email.*'],
  ['groups', 'Groups', 'acme'],
] as const;

export function RuntimeKeys() {
  const keys = useGet<ApiKeyList>(KEYS, { limit: 200 });
  const [secret, setSecret] = useState('');
  const reveal = ({ key }: ApiKeyCreated) => {
    setSecret(key);
    keys.reload();
  };
  const rotate = ({ id, name }: ApiKey) => {
    const text = 'The old secret works for another 24 hours, so that you can update its users.';
    const question = { title: `Create a new secret for ${name}?`, text, action: 'Create a new secret' };
    return askAndAct(question, async () => reveal(await api.post(`${pathOf(id)}/rotate`, { overlap: '24h' })));
  };
  return (
    <Section title="Made at run time" actions={<NewButton label="New key" scope="admin:keys" edit=":new" />}>
      <Collection
        of={keys}
        label="Keys made at run time"
        columns={COLUMNS}
        rowKey={({ id }) => id}
        nameOf={({ name }) => name}
        actions={[
          { label: 'Rotate', run: rotate },
          { label: 'Revoke', run: revoke },
        ]}
        form={() => <KeyForm onMade={reveal} />}
        empty={<Empty icon="settings" title="No keys yet" text="A key for each customer or program can be revoked." />}
      />
      {secret && <SecretDialog title="The key" text={secret} label="key" onClose={() => setSecret('')} />}
    </Section>
  );
}

function revoke({ id, name }: ApiKey): Promise<boolean> {
  const text = 'Requests with it fail within 30 seconds. This cannot be undone.';
  const question = { title: `Revoke the key ${name}?`, text, action: 'Revoke the key', danger: true };
  return askAndAct(question, () => api.del(pathOf(id)), `${name} is revoked.`);
}

const COLUMNS: readonly Column<ApiKey>[] = [
  textColumn('name', 'Key'),
  textColumn('role', 'Role', ({ role }) => <Badge text={role} />),
  column('bounds', 'Bound to', (key) => <Words of={BOUNDS.flatMap(([kind]) => key[kind] ?? [])} />),
  textColumn('rate', 'Rate'),
  timeColumn('used_at', 'Last used'),
  timeColumn('expires_at', 'Expires'),
];

function KeyForm({ onMade }: { onMade: (key: ApiKeyCreated) => void }) {
  const save = async (form: FormData) => {
    const lists = BOUNDS.map(([kind]) => {
      const words = textIn(form, kind).split(',');
      return [kind, words.map((word) => word.trim()).filter(Boolean)] as const;
    });
    const [end, rate] = [textIn(form, 'expires_at'), textIn(form, 'rate')];
    const made = await api.post<ApiKeyCreated>(KEYS, {
      ...{ name: textIn(form, 'name'), role: textIn(form, 'role') },
      ...Object.fromEntries(lists.filter(([, words]) => words.length > 0)),
      ...(end !== '' && { expires_at: end }),
      ...(rate !== '' && { rate }),
    });
    openAside({ edit: null });
    onMade(made);
    return undefined;
  };
  return (
    <FormDialog title="New key" action="Create" onSubmit={save}>
      <TextField name="name" label="Name" hint="The audit log shows it." required />
      <SelectField name="role" label="Role" options={ROLES} />
      {BOUNDS.map(([kind, label, example]) => (
        <TextField key={kind} name={kind} label={label} hint="Separated by commas. Empty: all." placeholder={example} />
      ))}
      <TextField name="rate" label="Rate" hint="Jobs into each queue, such as 600/m. Empty: any number." />
      <TextField name="expires_at" label="Expires" hint="Such as 90d, or a time. Empty: never." />
    </FormDialog>
  );
}
