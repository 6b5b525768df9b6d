/**
 * JSON of clients: parsed, and refused where it could not be stored and returned unchanged. Bodies with many parts
 * are refused only where unreadable: each part is judged alone.
 */
import { type ApiError, invalidPayload, invalidPolicy } from '../errors';
import { parsePayloads } from './exact';
import { isObject } from './fields';
import { isSuspicious } from './json-text';
import { emptiedAt, MAX_DEPTH, type Outline, outlineOf } from './nesting';
import { FLAWS, RefusedPart, type Unstorable, unstorableIn, written } from './storable';

export type ReadText = (text: string, outline: Outline) => unknown;

/** 400: JSON, but no object. */
export const notAnObject = () => invalidPayload('The body must be a JSON object.');

/** Parses JSON. @throws {ApiError} 400 for bad JSON, too much nesting, or a value that cannot be stored */
export function parseJson(text: string, read: ReadText = (text) => JSON.parse(text)): unknown {
  const outline = outlineOf(text, MAX_DEPTH);
  if (outline.depth > MAX_DEPTH) throw tooDeep();
  const value = parsed(text, outline, read);
  const problem = isSuspicious(text, outline) ? unstorableIn(value) : undefined;
  if (problem) throw refusalOf(problem);
  return value;
}

/** As {@link parseJson}, of a job or what holds jobs: integers in payloads stay exact. */
export const parseEnvelope = (text: string): unknown => parseJson(text, parsePayloads);

/** Deepest nesting that is parsed whole: a value at its limit, and the members around it. */
const MAX_READ_DEPTH = MAX_DEPTH + 16;

/** Parses a report, whose readers judge each value; what nests too deeply is emptied. @throws {ApiError} 400 */
export const parseReport = (text: string): unknown => parseLoosely(text).value;

/** Lists of jobs: one that cannot be stored becomes a {@link RefusedPart}. */
const JOBS: ReadonlySet<string> = new Set(['jobs']);
/** Lists whose readers judge each value: reports, and ids that are looked for. */
const JUDGED: ReadonlySet<string> = new Set(['reports', 'job_ids', 'ids', 'active_jobs', 'active_job_ids']);

/** Parses independent parts; an unstorable one refuses itself. @throws {ApiError} 400: bad JSON, or beside the parts */
export function parseParts(text: string): unknown {
  const { value, isSuspect } = parseLoosely(text);
  if (!isSuspect || !isObject(value)) return value;
  for (const [name, member] of Object.entries(value)) {
    if (Array.isArray(member) && JUDGED.has(name)) continue;
    if (Array.isArray(member) && JOBS.has(name)) value[name] = member.map((part, index) => judged(part, [name, index]));
    else {
      const problem = unstorableIn({ [name]: member }, MAX_DEPTH);
      if (problem) throw refusalOf(problem.flaw === 'too_deep' ? { ...problem, path: [name] } : problem);
    }
  }
  return value;
}

function judged(part: unknown, place: (string | number)[]): unknown {
  const problem = unstorableIn(part);
  return problem ? new RefusedPart(part, refusalOf(below(place, problem))) : part;
}

/** The place of a problem in its body. That of a value so deep would fill the answer: what holds it is named. */
function below(place: (string | number)[], { flaw, path }: Unstorable): Unstorable {
  return { flaw, path: flaw === 'too_deep' ? place : [...place, ...path] };
}

/** @returns also whether there may be something in it that cannot be stored */
function parseLoosely(text: string): { value: unknown; isSuspect: boolean } {
  const whole = outlineOf(text, MAX_READ_DEPTH);
  const isDeep = whole.depth > MAX_READ_DEPTH;
  const read = isDeep ? emptiedAt(MAX_READ_DEPTH, text) : text;
  const outline = isDeep ? outlineOf(read, MAX_READ_DEPTH) : whole;
  const value = parsed(read, outline, parsePayloads);
  return { value, isSuspect: outline.depth > MAX_DEPTH || isSuspicious(read, outline) };
}

function parsed(text: string, outline: Outline, read: ReadText): unknown {
  try {
    return read(text, outline);
  } catch {
    throw invalidPayload('The body is not valid JSON.');
  }
}

const tooDeep = () => invalidPayload(`The body nests more than ${MAX_DEPTH} levels deep.`, { max_depth: MAX_DEPTH });

/** Members that hold whatever a client likes, other policies than those of jobs too. */
const FREE: ReadonlySet<string> = new Set(['args', 'meta', 'metadata', 'result', 'data', 'state', 'details']);

/** A number that is too large for its policy is the policy's mistake; its text is still JSON. */
function refusalOf({ flaw, path }: Unstorable): ApiError {
  const names = path.map(String);
  const policy = names.findIndex((name) => name === 'retry' || name === 'default_retry');
  const isOfPolicy = policy >= 0 && !names.slice(0, policy).some((name) => FREE.has(name));
  if (isOfPolicy && flaw === 'out_of_range') {
    return invalidPolicy(written(path.slice(policy)), 'must not be a number beyond the range of doubles');
  }
  const field = path.length > 0 ? { field: written(path) } : {};
  const depth = flaw === 'too_deep' ? { max_depth: MAX_DEPTH } : {};
  return invalidPayload(`The body ${FLAWS[flaw]}.`, { ...field, ...depth });
}
