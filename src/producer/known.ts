/** Options that do not exist: refused before anything is sent, because the compiler does not see all of them. */

import { suggestion } from '../job/near-miss';
import { own } from '../job/own';

/** The names of a type, each once; the compiler says when one is missing. */
export const namesOf = <T extends object>(names: Record<keyof T, true>): ReadonlySet<string> =>
  new Set(Object.keys(names));

/** @param without what lacks the member, for the message @throws {TypeError} naming the first unknown member */
export function refuseUnknown(given: object, known: ReadonlySet<string>, without: string): void {
  for (const name in given) {
    if (known.has(name) || own(given as Record<string, unknown>, name) === undefined) continue;
    throw new TypeError(
      `${without} "${name.slice(0, 64)}"; there are ${[...known].join(', ')}.${suggestion(name.slice(0, 64), [...known])}`,
    );
  }
}
