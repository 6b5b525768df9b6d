/** `tocsin schemas`, with `show`, `set` and `remove` */
import type { Command } from 'commander';
import type { ArgsSchema } from '../../client/schemas';
import type { Terminal } from '../output';
import { listed, readObject, removal, resourceCommand, shown, verb } from '../resource';
import { ago, type Column } from '../views';

const COLUMNS: readonly Column<ArgsSchema>[] = [
  ['TYPE', ({ type }) => type],
  ['VERSION', ({ version }) => String(version)],
  ['URI', ({ uri }) => uri],
  ['REGISTERED', ({ createdAt }, now) => ago(createdAt, now)],
];

export function schemasCommand(terminal: Terminal): Command {
  return resourceCommand(terminal, {
    name: 'schemas',
    summary: "list the schemas of jobs' arguments",
    list: (opened) => listed(opened, 'schemas', opened.tocsin.schemas.list(), COLUMNS, 'No schemas.'),
    one: [
      ['<type>', 'job type'],
      ['<version>', 'version of the schema'],
    ],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a schema',
        takes: [
          ['<type>', 'job type'],
          ['[version]', 'version of the schema; default: the latest'],
        ],
        async run(opened, type = '', version) {
          const schema = await opened.tocsin.schemas.get(type, version);
          return shown(opened, 'schema', schema, { schema: JSON.stringify(schema.schema, null, 2) });
        },
      }),
      verb<{ file: string }>({
        name: 'set',
        summary: 'register a version of a schema',
        options: (command) =>
          command.requiredOption('--file <path>', 'JSON Schema of the arguments; - reads it from standard input'),
        async run({ tocsin, options }, type = '', version = '') {
          const schema = await tocsin.schemas.put(type, version, readObject(options.file));
          return { value: { schema }, text: `${schema.type}  ${schema.version}  registered` };
        },
      }),
      removal('the schema', ({ tocsin }, type = '', version = '') => tocsin.schemas.delete(type, version), {
        summary: 'remove a version of a schema',
      }),
    ],
  });
}
