/** Reading the stored body of a job without its arguments, which may be long and stay the text that they are. */
import type { JobBody } from '../record';
import { parseExactly } from './exact';
import { parseObject } from './fields';

/** What a body says beside its arguments. */
export type Head = Omit<JobBody, 'args'>;

export interface Apart {
  /** JSON of the arguments. */
  args: string;
  head: Head;
}

/** What follows the arguments in every body that the server writes. */
const META = ',"meta":{';

/** Splits a stored body. @returns undefined: it is not in the server's form, and must be parsed */
export function takenApart(body: string, type: string): Apart | undefined {
  const start = `{"type":${JSON.stringify(type)},"args":`;
  const end = body.lastIndexOf(META);
  if (!body.startsWith(start) || end < start.length) return undefined;
  // Inside of the arguments, or of a later member, it would be followed by brackets too many, and not be an object.
  const others = parseObject(`{${body.slice(end + 1)}`, parseExactly);
  return others && { args: body.slice(start.length, end), head: { type, ...others } as Head };
}
