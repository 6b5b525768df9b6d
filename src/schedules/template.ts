/** The job template of an entry as the request has it: in `job_template`, or beside the entry's own members. */
import { optional, readDuration, readMilliseconds, readObject } from '../job/envelope/fields';
import { IN_OPTIONS } from '../job/envelope/parse';
import { ApiError, invalidRequest } from '../job/errors';
import { optionsThat } from '../job/options';
import { own } from '../job/own';

/** Times of each fire's job. Next to the entry's members, they would look like times of the entry itself. */
const OPTIONS_ONLY: readonly string[] = optionsThat('moment');

/** Members of a job that are allowed beside those of the entry. */
export const FLAT_NAMES: readonly string[] = ['type', 'args', ...optionsThat('beside')];
export const FLAT_OPTIONS = IN_OPTIONS.filter((name) => ![...OPTIONS_ONLY, 'pending', 'metadata'].includes(name));

/**
 * Reads a template without checking its job. @param before the template to change; `null` members are removed
 * @param prefix path of the entry, with a dot at its end, or empty
 * @throws {ApiError} 400 for an `id`, and for times next to the members of the entry
 * @returns the template, its path in the request, and the options next to the entry's members
 */
export function readTemplate(
  input: Record<string, unknown>,
  before: Record<string, unknown> | undefined,
  prefix: string,
): { template: Record<string, unknown>; path: string; flat: string[] } {
  const given = optional(input, 'job_template', readObject, prefix);
  const path = given ? `${prefix}job_template` : prefix.slice(0, -1);
  const source = given ?? input;
  if (given && (given.id ?? null) !== null) {
    throw invalidRequest(`${path}.id`, `${path}.id cannot be chosen: each fire creates its own job.`);
  }
  const misplaced = OPTIONS_ONLY.find((name) => (own(input, name) ?? null) !== null);
  if (misplaced !== undefined) {
    const field = prefix + misplaced;
    const place = `${path === '' ? '' : `${path}.`}options.${misplaced}`;
    throw invalidRequest(field, `${field} is not a member of an entry; for the job of each fire it is ${place}.`);
  }
  const names = given ? Object.keys(given) : FLAT_NAMES;
  const template: Record<string, unknown> = { ...before };
  for (const name of names) {
    if (name === 'options' || own(source, name) === undefined) continue;
    // A job without arguments leaves them out, or has an empty list.
    if (own(source, name) === null && name !== 'type' && name !== 'args') delete template[name];
    else template[name] = own(source, name);
  }
  if (template.args === undefined) template.args = [];
  const at = path === '' ? '' : `${path}.`;
  const options = optional(source, 'options', readObject, at);
  const flat = given
    ? {}
    : Object.fromEntries(FLAT_OPTIONS.flatMap((name) => (name in input ? [[name, input[name]]] : [])));
  template.options = withTimeout(
    before ? { ...(before.options as object | undefined), ...flat, ...options } : { ...flat, ...options },
    `${at}options`,
  );
  return { template, path, flat: Object.keys(flat).filter((name) => own(options ?? {}, name) === undefined) };
}

/** Runs `read`. An error about an option beside the entry's own members names it by its place there. */
export function asWritten<T>(flat: readonly string[], prefix: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const field = error instanceof ApiError ? error.data.details?.field : undefined;
    if (!(error instanceof ApiError) || typeof field !== 'string') throw error;
    const name = flat.find((option) => `${field}.`.startsWith(`${prefix}options.${option}.`));
    if (name === undefined) throw error;
    const written = prefix + field.slice(`${prefix}options.`.length);
    const { data } = error;
    const message = data.message.replaceAll(field, written);
    throw new ApiError({ ...data, message, details: { ...data.details, field: written } });
  }
}

/** Converts `timeout` in seconds, from cron entries of the Open Job Spec, to `timeout_ms`. */
function withTimeout(options: Record<string, unknown>, path: string): Record<string, unknown> {
  const { timeout, ...rest } = options;
  if (timeout === undefined || timeout === null) return rest;
  if ((rest.timeout_ms ?? null) !== null) {
    throw invalidRequest(`${path}.timeout`, `${path}.timeout cannot be combined with ${path}.timeout_ms.`);
  }
  const ms = typeof timeout === 'number' ? timeout * 1000 : readDuration(timeout, `${path}.timeout`);
  return { ...rest, timeout_ms: readMilliseconds(ms, `${path}.timeout`) };
}
