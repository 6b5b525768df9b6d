/**
 * Names of members inside a job's payload, as queries write them: `args.0.user_id`, `args[0].user_id`, `meta.tenant`,
 * `meta["ojs.codec"]`. Digits count array entries from 0. A member whose name has dots, or only digits, must be quoted.
 */
import { invalidRequest } from '../../../job/errors';

const ROOT = /^(args|meta)(?=[.[])/;
const SEGMENT = /^(?:\.([^.[\]"\\\p{Cc}]+)|\[(\d{1,9})\]|\["([^"\\\p{Cc}]+)"\])/u;
const MAX_SEGMENTS = 20;

/** Does this name a member of the payload, rightly or not? */
export const isFieldName = (name: string): boolean => /^(args|meta)([.[]|$)/.test(name);

/** The JSON path below the stored body. @throws {ApiError} 400 naming the field */
export function readFieldPath(name: string): string {
  const root = ROOT.exec(name)?.[1];
  let rest = root === undefined ? '' : name.slice(root.length);
  let path = `.${root}`;
  let segments = 0;
  while (rest !== '') {
    const match = SEGMENT.exec(rest);
    if (!match || ++segments > MAX_SEGMENTS) throw malformed(name);
    const [whole, plain, index, quoted] = match;
    const number = index ?? (plain !== undefined && /^\d{1,9}$/.test(plain) ? plain : undefined);
    path += number === undefined ? `."${plain ?? quoted}"` : `[${Number(number)}]`;
    rest = rest.slice(whole.length);
  }
  if (segments === 0) throw malformed(name);
  return path;
}

const malformed = (name: string) =>
  invalidRequest(name, `${name} is not the path of a member; write args.0.user_id, meta.tenant or meta["a.b"].`);
