/** Reads query parameters; each reader throws the 400 that names its parameter. */
import { readQueueName } from '../../job/envelope/fields';
import { readPast } from '../../job/envelope/parse';
import { invalidRequest } from '../../job/errors';
import { quote } from '../../job/text';
import type { AppContext } from '../context';

/** An integer clamped to `min` … `max`; undefined when the parameter is absent. */
export function integerParam(c: AppContext, name: string, min: number, max: number): number | undefined {
  const text = c.req.query(name);
  if (text === undefined) return undefined;
  if (!/^[+-]?\d+$/.test(text)) throw invalidRequest(name, `${name} must be an integer.`);
  return Math.min(Math.max(Number(text), min), max);
}

/** `true` or `false`; undefined when the parameter is absent. */
export function booleanParam(c: AppContext, name: string): boolean | undefined {
  const text = c.req.query(name);
  if (text === undefined) return undefined;
  if (text === 'true' || text === 'false') return text === 'true';
  throw invalidRequest(name, `${name} must be true or false.`);
}

/** A non-empty text; undefined when the parameter is absent or empty. */
export const textParam = (c: AppContext, name: string): string | undefined => c.req.query(name) || undefined;

/** A time at which something has happened, or how long before `now` that was; in epoch ms. */
export function pastParam(c: AppContext, name: string, now: number): number | undefined {
  const text = textParam(c, name);
  return text === undefined ? undefined : readPast(now)(withPlus(text), name);
}

/** A "+" in a query reads as a space, but zones such as +02:00 and offsets such as +PT1H are usually sent unescaped. */
export const withPlus = (text: string): string => text.replace(' ', '+');

/** All values of a parameter that may be repeated or hold a comma list; undefined when there is none. */
export function listParam(c: AppContext, ...names: string[]): string[] | undefined {
  const values = names.flatMap((name) => c.req.queries(name) ?? []).flatMap((text) => text.split(','));
  const present = values.map((value) => value.trim()).filter((value) => value !== '');
  if (present.length > 0) return [...new Set(present)];
  // An empty condition must not match everything; a list of commas is one.
  if (values.length > 0) throw invalidRequest(names[0] ?? '', `${names[0]} must not be blank.`);
  return undefined;
}

/** The queues named by a parameter that may be repeated or hold a comma list. @throws {ApiError} 400 for a bad name */
export const queueParam = (c: AppContext, ...names: string[]): string[] | undefined =>
  listParam(c, ...names)?.map((name) => readQueueName(name, names[0] ?? 'queue'));

/** A parameter that is one of `words`, `usual` when it is absent. @throws {ApiError} 400 */
export const wordParam = <T extends string>(c: AppContext, name: string, words: readonly T[], usual: NoInfer<T>): T =>
  oneOf([textParam(c, name) ?? usual], words, name)?.[0] ?? usual;

/** Is an optional part of the answer asked for? @throws {ApiError} 400 unless it is `true` or `false` */
export const wantsParam = (c: AppContext, name: string): boolean =>
  wordParam(c, name, ['true', 'false'], 'false') === 'true';

export function oneOf<T extends string>(
  values: string[] | undefined,
  words: readonly T[],
  name: string,
): T[] | undefined {
  const known: readonly string[] = words;
  const wrong = values?.find((value) => !known.includes(value));
  if (wrong !== undefined) throw invalidRequest(name, `${name} knows no "${quote(wrong)}"; use ${words.join(', ')}.`);
  return values as T[] | undefined;
}
