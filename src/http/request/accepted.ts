/**
 * Refuses what the contract of a route does not name, before its handler runs. A misspelt or missing condition would
 * otherwise widen a request: a list to all jobs, a dry run to the removal itself.
 */
import { invalidRequest } from '../../job/errors';
import { own } from '../../job/own';
import type { AppContext } from '../context';
import { accepted as acceptedBy } from '../openapi/built';
import type { Check, Route, Rules } from '../route';
import { readOptionalBody } from './body';
import { isFieldName } from './filter/field-path';
import { type KnownMembers, refuseMembers, unknownName } from './members';

/** Parameters of every route: the key of pages and of EventSource. */
const ANYWHERE = ['access_token'];

/** Say where a list begins, so that an empty one means its beginning. */
const PLACES = ['cursor', 'after', 'last_event_id'];

interface Accepted {
  query: ReadonlySet<string>;
  /** Undefined: the contract has no JSON body. */
  body: KnownMembers | undefined;
  isOpen: boolean;
}

/** What the contract of a route takes; undefined: the document has no such route. @param path in Hono's syntax */
function readAccepted({ method, path }: Route): Accepted | undefined {
  const known = own(acceptedBy, `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}').replace('*', '{path}')}`);
  return known && { ...known, query: new Set(known.query), body: known.body && new Map(Object.entries(known.body)) };
}

/** The check of a route. Its contract is read with the first request. */
export function accepted(route: Route & Rules): Check {
  if (route.scope === 'public') return () => undefined;
  let known: Accepted | undefined;
  return async (c) => {
    known ??= readAccepted(route);
    if (known === undefined) return undefined;
    if (!namesOneThing(route, known)) refuseParameters(c, known.query);
    // Producers and workers speak the protocol, by which a server ignores members that it does not know.
    if (route.method === 'GET' || route.audit === 'none' || route.judgesMembers || known.isOpen) return undefined;
    if (known.body) c.set('members', known.body);
    else refuseMembers((await readOptionalBody(c)) ?? {}, new Map());
    return undefined;
  };
}

/** Only its path says what it reads: no condition can be missing. */
const namesOneThing = ({ method, path }: Route & Rules, { query }: Accepted) =>
  method === 'GET' && query.size === 0 && /:\w+$/.test(path);

/** @throws {ApiError} 400 naming the first parameter that is not known, or has no value */
function refuseParameters(c: AppContext, known: ReadonlySet<string>): void {
  for (const [name, values] of Object.entries(c.req.queries())) {
    if (ANYWHERE.includes(name)) continue;
    // Of the routes that choose jobs; each of these has this parameter.
    const isField = known.has('dead_letter') && isFieldName(name);
    if (!isField && !known.has(name)) throw unknownName(name, 'is not a parameter of this request', [...known]);
    if (!values.includes('') || PLACES.includes(name)) continue;
    throw invalidRequest(name, `${name} has no value: leave it out, or give it one.`);
  }
}
