import type { ArgsSchema } from '../../client/schemas';
import { action, resource } from '../command';
import { listed, readObject, removal, shown } from '../resource';
import { ago, type Column } from '../views';

const COLUMNS: readonly Column<ArgsSchema>[] = [
  ['TYPE', ({ type }) => type],
  ['VERSION', ({ version }) => String(version)],
  ['URI', ({ uri }) => uri],
  ['REGISTERED', ({ createdAt }, now) => ago(createdAt, now)],
];

const TYPE = ['<type>', 'job type'] as const;
const SCHEMA = ['--file <path>', 'JSON Schema of the arguments; - reads it from standard input'] as const;

export const schemas = resource(
  action('schemas', "list the schemas of jobs' arguments", {}, (opened) =>
    listed(opened, 'schemas', opened.tocsin.schemas.list(), COLUMNS, 'No schemas.'),
  ),
  [TYPE, ['<version>', 'version of the schema']],
  [
    action(
      'show',
      'show a schema',
      { takes: [TYPE, ['[version]', 'version of the schema; default: the latest']] },
      async (opened, type, version) => {
        const schema = await opened.tocsin.schemas.get(type, version);
        return shown(opened, 'schema', schema, { schema: JSON.stringify(schema.schema, null, 2) });
      },
    ),
    action(
      'set',
      'register a version of a schema',
      { needs: { file: SCHEMA } },
      async ({ tocsin, members }, type, version) => {
        const schema = await tocsin.schemas.put(type, version, readObject(members.file));
        return { value: { schema }, text: `${schema.type}  ${schema.version}  registered` };
      },
    ),
    removal('the schema', ({ tocsin }, type = '', version = '') => tocsin.schemas.delete(type, version), {
      summary: 'remove a version of a schema',
    }),
  ],
);
