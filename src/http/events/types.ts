import { invalidRequest } from '../../job/errors';
import { EVENT_TYPES, eventTypesNamed, STATE_CHANGED } from '../../job/event-types';
import { quote } from '../../job/text';
import type { AppContext } from '../context';
import { listParam } from '../request/query';

/** The types that these parameters name, each once; `job.*` names all of a kind. @throws {ApiError} 400 */
export const typesParam = (c: AppContext, ...names: string[]): string[] | undefined =>
  readTypes(listParam(c, ...names), names[0] ?? 'types');

/** As {@link typesParam}, of a list. */
export function readTypes(given: readonly string[] | undefined, field: string): string[] | undefined {
  if (given === undefined) return undefined;
  const types = given.flatMap((name) => {
    const known = eventTypesNamed(name);
    if (known.length > 0) return known;
    throw invalidRequest(
      field,
      `${field} knows no "${quote(name)}"; use ${EVENT_TYPES.join(', ')}, or job.* for a kind.`,
    );
  });
  return [...new Set(types)];
}

/** The types to ask of a queue, for a stream of these types: a change of state comes with events of many types. */
export const typesToFollow = (types: readonly string[] | undefined): readonly string[] | undefined =>
  types?.includes(STATE_CHANGED) ? undefined : types;
