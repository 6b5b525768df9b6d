import type { ArgsSchema } from '../../client/schemas';
import type { TargetStatus } from '../../client/targets';
import { action, resource } from '../command';
import { CliError } from '../failure';
import { listed, readObject, removal, shown } from '../resource';
import { columns, since } from '../views';

const SCHEMAS = columns<ArgsSchema>({
  ...{ TYPE: 'type', VERSION: ({ version }) => String(version), URI: 'uri', REGISTERED: since('createdAt') },
});

const TYPE = ['<type>', 'job type'] as const;
const SCHEMA = ['--file <path>', 'JSON Schema of the arguments; - reads it from standard input'] as const;

export const schemas = resource(
  action('schemas', "list the schemas of jobs' arguments", {}, (opened) =>
    listed(opened, 'schemas', opened.tocsin.schemas.list(), SCHEMAS, 'No schemas.'),
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

const COLUMNS = columns<TargetStatus>({
  ...{ TARGET: 'name', STATE: 'state' },
  TAKES: ({ patterns }) => patterns.join(', '),
  TYPES: ({ types }) => types?.join(', '),
  ...{ 'NEXT TRY': since('nextTryAt'), 'LAST ERROR': 'lastError' },
});

const NONE = 'No handlers are mapped: jobs wait for workers that pull.';

export const targets = resource(
  action('targets', 'list the handlers that jobs are pushed to, and which of them are down', {}, (opened) =>
    listed(opened, 'targets', opened.tocsin.targets.list(), COLUMNS, NONE),
  ),
  [['<name>', 'name of the handler, as tocsin targets shows it']],
  [
    action('resume', 'call a handler that is down now, and resume it if it responds', {}, async ({ tocsin }, name) => {
      const outcome = await tocsin.targets.resume(name);
      const { tried, resumed, queues } = outcome;
      const answer = { value: outcome, text: resumedText(name, tried, resumed) };
      const down = queues.find(({ state }) => state !== 'up');
      if (down === undefined) return answer;
      const why = `${name} is still down in ${tried - resumed} of ${tried} queues`;
      const error = down.lastError ?? 'it does not accept calls';
      return { ...answer, failure: new CliError(`${why}: ${error}`, undefined, 'down') };
    }),
  ],
);

function resumedText(name: string, tried: number, resumed: number): string {
  if (tried === 0) return `${name} is not down in any queue.`;
  return resumed === 0 ? '' : `${name} is up again in ${resumed} ${resumed === 1 ? 'queue' : 'queues'}.`;
}
