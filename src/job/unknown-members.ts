/** Members of a request that nothing reads: never refused, for clients of later releases; the answer warns of them. */
import { invalidRequest } from './errors';
import { suggestion } from './near-miss';
import { cut, quote } from './text';

/** Warnings of one request at most, and characters of a name in one. */
const MAX_WARNINGS = 10;
const MAX_NAME = 64;

/** The end of a warning about a member of this name; undefined: it is not worth one. */
export type Verdict = (name: string) => string | undefined;

export class UnknownMembers {
  /** By what is the same in every entry of a list: the path after the last index. */
  private readonly texts = new Map<string, string>();

  /** Notes members that are not `known`; null is absent. @param path of `given` with a dot at its end, or empty */
  note(given: Record<string, unknown>, known: ReadonlySet<string>, path: string, verdict: Verdict): void {
    for (const name in given) {
      if (known.has(name) || given[name] === null) continue;
      if (this.texts.size === MAX_WARNINGS) return;
      this.add(cut(name, MAX_NAME), path, verdict);
    }
  }

  private add(name: string, path: string, verdict: Verdict): void {
    const key = path.slice(path.lastIndexOf('].') + 1).replace(/^\./, '') + name;
    if (this.texts.has(key)) return;
    const end = verdict(name);
    if (end !== undefined) this.texts.set(key, `${path}${name} ${end}`);
  }

  /** Notes a member whose value has no effect, or ends the job. @param field its path @param end of the warning */
  warn(field: string, end: string): void {
    if (this.texts.size < MAX_WARNINGS) this.add(field.slice(field.lastIndexOf('.') + 1), pathBefore(field), () => end);
  }

  get warnings(): string[] {
    return [...this.texts.values()];
  }
}

/** The path of what has this member, with a dot at its end, or empty. */
const pathBefore = (field: string) => field.slice(0, field.lastIndexOf('.') + 1);

/** Refuses unknown members where a value is stored. @param values that hold it, the likeliest first @throws 400 */
export function refuseOthers(
  given: Record<string, unknown>,
  values: readonly string[],
  others: readonly string[] = [],
): void {
  for (const name in given) {
    if (values.includes(name) || others.includes(name)) continue;
    const meant = suggestion(name, [...values, ...others]);
    const advice = values[0] === undefined ? '' : ` Put it under ${values[0]}.`;
    throw invalidRequest(quote(name), `${quote(name)} is not a member of this request.${meant || advice}`);
  }
}

/** The verdict on members that have no effect at all. */
export function withoutEffect(known: readonly string[]): Verdict {
  return (name) => `is not known and has no effect.${suggestion(name, known)}`;
}
