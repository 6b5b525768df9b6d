/** The filter of the list: it stands in the URL, goes to the server as a query, and to operations as a body. */
import type { Query } from '../../core/router';
import { query, url } from '../../core/router';

/** What filters, and what its chip says. The names are those of the API, save for `dead`. */
export const NAMES = {
  q: 'Search',
  state: 'State',
  queue: 'Queue',
  type: 'Type',
  tag: 'Tag',
  group: 'Group',
  since: 'Created since',
  error: 'Error',
  error_type: 'Error type',
  fingerprint: 'Failure group',
  parent: 'Parent',
  dead: 'Dead letters',
} as const;

export const VALUES = {
  dead: { true: 'Only dead letters', false: 'Without dead letters' },
  since: {
    '15m': 'Created last 15 minutes',
    '1h': 'Created last hour',
    '24h': 'Created last 24 hours',
    '7d': 'Created last 7 days',
    '30d': 'Created last 30 days',
  },
} as const;

/** Takes several names, separated by commas. */
const LISTS: ReadonlySet<string> = new Set(['state', 'queue', 'type', 'tag', 'fingerprint']);

/** Members of the payload may be named, too: `args.0.user=42`. */
const FIELD = /^(args|meta)[.[]/;

const entries = (): [string, string][] =>
  [...url.value.searchParams].filter(([name, value]) => value !== '' && (name in NAMES || FIELD.test(name)));

/** Names of all that filters now, with what their chips say. */
export function chips(): Record<string, string> {
  const fields = entries().flatMap(([name]) => (FIELD.test(name) ? [[name, name]] : []));
  return { ...NAMES, ...Object.fromEntries(fields) };
}

export const filterQuery = (): Query =>
  Object.fromEntries(entries().map(([name, value]) => (name === 'dead' ? ['dead_letter', value] : [name, value])));

/** Does anything filter but the queue, the type and the state? Only the server knows what fits then. */
export const isSearch = (): boolean =>
  entries().some(
    ([name, value]) => !(name === 'queue' || name === 'state' || (name === 'type' && !value.includes('*'))),
  );

/** Does a job of this queue and type fit, as far as these two tell? */
export function fits(queue: unknown, type: unknown): boolean {
  const isOneOf = (name: string, value: unknown) => query(name) === '' || list(query(name)).includes(String(value));
  return isOneOf('queue', queue) && (query('type').includes('*') || isOneOf('type', type));
}

/** The states that the list shows; none: all. */
export const statesShown = (): readonly string[] => (query('state') === '' ? [] : list(query('state')));

const list = (text: string): string[] => text.split(',').map((one) => one.trim());

/** As the filter of an operation. One that names nothing would be refused: then all states are named. */
export function filterBody(allStates: readonly string[]): Record<string, unknown> {
  const where: Record<string, unknown> = {};
  const body: Record<string, unknown> = {};
  for (const [name, value] of entries()) {
    if (name === 'dead') body.dead_letter = value === 'true';
    else if (name === 'parent') where['meta.parent_id'] = value;
    else if (FIELD.test(name)) where[name] = value;
    else body[name] = LISTS.has(name) ? list(value) : value;
  }
  if (Object.keys(where).length > 0) body.where = where;
  return Object.keys(body).length > 0 ? body : { state: allStates };
}
