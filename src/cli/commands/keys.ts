import type { ApiKey, ApiKeyCreated } from '../../client/keys';
import { pathTo } from '../../client/requests';
import type { Duration } from '../../job/wire';
import { action, list, resource } from '../command';
import { timeText } from '../output';
import { bodyOf, listed, removal, shown } from '../resource';
import { columns, since } from '../views';

const COLUMNS = columns<ApiKey>({
  ...{ ID: 'id', NAME: 'name', ROLE: 'role' },
  QUEUES: ({ queues = ['*'] }) => queues.join(', '),
  TYPES: ({ types = ['*'] }) => types.join(', '),
  GROUPS: ({ groups = ['*'] }) => groups.join(', '),
  USED: since('usedAt', 'never'),
  EXPIRES: ({ expiresAt }, now) => timeText(expiresAt ?? undefined, now) ?? 'never',
});

const NARROW = {
  queues: ['--queue <name>', 'only this queue, or a beginning such as mail-*; a list, or several times', list],
  types: ['--type <type>', 'only jobs of this type, or a beginning; a list, or several times', list],
  groups: ['--group <group>', 'only jobs of this group, or a beginning; a list, or several times', list],
  rate: ['--rate <rate>', 'jobs that it may enqueue into each queue: 600/m, or per s, h, d'],
  expires_at: ['--expires <when>', 'end: a duration from now such as 90d, or RFC 3339'],
} as const;

const RIGHTS = {
  role: ['--role <role>', 'viewer, operator, admin'],
  scopes: ['--scope <scope>', 'scope that the key gets; a list, or several times', list],
} as const;

const OVERLAP = {
  overlap: ['--overlap <duration>', 'time that the old secret still works: 24h; default: none'],
} as const;

/** The secret has a line of its own, so that it can be copied. */
function shownOnce(created: ApiKeyCreated) {
  const { key, ...rest } = created;
  return { value: { key: rest, secret: key }, text: `${key}\nThe key is shown only now.  id ${rest.id}` };
}

export const keys = resource(
  action('keys', 'list the API keys made at run time', {}, (opened) =>
    listed(opened, 'keys', opened.tocsin.keys.list(), COLUMNS, 'No keys.'),
  ),
  [['<id>', 'id of the key']],
  [
    action('show', 'show a key, without its secret', {}, async (opened, id) =>
      shown(opened, 'key', await opened.tocsin.keys.get(id)),
    ),
    action(
      'create',
      'create a key and print it once',
      { takes: [['<name>', 'name of the key, for the audit log']], flags: { ...RIGHTS, ...NARROW } },
      async ({ write, members }, name) =>
        shownOnce((await write('POST', '/admin/keys', bodyOf({ ...members, name }))) as unknown as ApiKeyCreated),
    ),
    action(
      'narrow',
      'rename a key, or let it do less',
      { flags: { name: ['--name <text>', 'name of the key'], ...NARROW } },
      async (opened, id) =>
        shown(opened, 'key', await opened.write('PATCH', pathTo`/admin/keys/${id}`, bodyOf(opened.members))),
    ),
    action(
      'rotate',
      'replace the secret of a key and print the new one once',
      { flags: OVERLAP },
      async ({ tocsin, members }, id) => shownOnce(await tocsin.keys.rotate(id, members as { overlap?: Duration })),
    ),
    removal('the key', ({ tocsin }, id = '') => tocsin.keys.delete(id), {
      name: 'revoke',
      summary: 'revoke a key',
      asks: (id) => `Revoke the key ${id}?`,
    }),
  ],
);
