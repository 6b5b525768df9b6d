/** What is in effect: access, handlers, limits, variables. Keys and secrets are not in it. */
import { wireName } from '../../../producer/names';
import { definePage, type Row } from '../page';
import { foreign, valueText } from '../text';

export const settings = definePage<Readonly<Record<string, unknown>>>({
  ...{ id: 'settings', title: 'Settings', key: 't', scope: 'admin:read' },
  load: (api) => api.get('/admin/system/config'),
  show: (answer) => ({
    facts: [],
    columns: [
      { label: 'SETTING', rank: 0, most: 50 },
      { label: 'VALUE', rank: 0 },
    ],
    rows: Object.entries(answer).flatMap(([name, value]) => rowsOf(name, value)),
    empty: 'No settings.',
  }),
});

/** Variables keep their names; members have those of the wire. */
function rowsOf(name: string, value: unknown): Row[] {
  const path = /^variables\./.test(name) ? name : wireName(name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [rowOf(path, valueText(value))];
  const { set } = value as { set?: unknown };
  if (typeof set === 'boolean')
    return set ? [rowOf(path, valueText((value as { value?: unknown }).value ?? '(set)'))] : [];
  return Object.entries(value).flatMap(([member, content]) => rowsOf(`${name}.${member}`, content));
}

const rowOf = (path: string, text: string): Row => ({ id: path, cells: [foreign(path), foreign(text)] });
