/** The errors behind an error: its `cause`, and the `errors` of an `AggregateError`, as the history keeps them. */
import { isError, memberOf, messageOf, safely } from '../job/thrown';
import { clip, stringOf } from './text';

/** An error behind another one. */
interface Cause {
  /** The name of its class. */
  type?: string;
  /** As Node has it, such as `ECONNREFUSED`. */
  code?: string;
  message: string;
  cause?: Cause;
  errors?: Cause[];
  /** How many more `errors` there were. */
  omitted?: number;
}

/** Most bytes of JSON for all causes of a failure. */
const MAX_BYTES = 4_096;
/** Largest details that a queue keeps, in characters of JSON. */
const KEPT_DETAILS = 16 * 1024;
const MAX_LEVELS = 8;
const MAX_ERRORS = 10;
/** Longest text of a cause, in characters. */
const MAX_TEXT = 512;

/** The details of a failure, with its causes as `cause` and `errors`, unless its details have these members already. */
export function withCauses(details: unknown, thrown: object): unknown {
  if (details !== undefined && (typeof details !== 'object' || details === null || Array.isArray(details)))
    return details;
  const causes = new Causes().behind(thrown, MAX_LEVELS);
  if (Object.keys(causes).length === 0) return details;
  const all = { ...causes, ...details };
  // The queue keeps nothing of details that are larger.
  return JSON.stringify(all).length > KEPT_DETAILS ? details : all;
}

class Causes {
  #left = MAX_BYTES;

  behind(thrown: unknown, levels: number): Pick<Cause, 'cause' | 'errors' | 'omitted'> {
    if (levels === 0) return {};
    const cause = this.#read(memberOf(thrown, 'cause'), levels);
    const all = memberOf(thrown, 'errors');
    const isList = safely(() => Array.isArray(all), false) && isError(thrown);
    const errors = isList ? this.#list(all as unknown[], levels) : {};
    return { ...(cause && { cause }), ...errors };
  }

  #list(all: unknown[], levels: number): Pick<Cause, 'errors' | 'omitted'> {
    const errors: Cause[] = [];
    const length = safely(() => all.length, 0);
    for (let at = 0; at < Math.min(length, MAX_ERRORS); at++) {
      const error = this.#read(memberOf(all, at), levels);
      if (error) errors.push(error);
    }
    if (errors.length === 0) return {};
    return { errors, ...(length > errors.length && { omitted: length - errors.length }) };
  }

  /** Undefined: there is none, or no room for it. */
  #read(value: unknown, levels: number): Cause | undefined {
    if (value === undefined || value === null) return undefined;
    const type = stringOf(memberOf(value, 'name'));
    const code = stringOf(memberOf(value, 'code'));
    const own: Cause = {
      ...(type !== undefined && { type: clip(type, MAX_TEXT) }),
      ...(code !== undefined && { code: clip(code, MAX_TEXT) }),
      message: clip(messageOf(value), MAX_TEXT),
    };
    this.#left -= new TextEncoder().encode(JSON.stringify(own)).length;
    return this.#left < 0 ? undefined : { ...own, ...this.behind(value, levels - 1) };
  }
}
