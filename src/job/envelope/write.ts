/** Writes a job as the JSON of its envelope, where most of it is text already. */
import type { JobBody, JobRecord, JobView } from '../record';
import { formatInstant } from '../time';
import { parseExactly } from './exact';
import { defined, parseObject } from './fields';
import {
  addCourse,
  type Envelope,
  type Head,
  isMinimal,
  isUntouched,
  type PolicyRoom,
  policyOf,
  renderJob,
  startOf,
  textOfPolicy,
  type Variables,
  writtenBody,
} from './render';

/**
 * As `JSON.stringify` of `renderJob`, reusing stored text. @param body the parsed body, where the caller has it
 * @param room see `renderJob`. @param timeoutMs its execution limit, if known
 * @throws {ApiError} 500 when the retry variables contradict each other
 */
export function writeJob(
  view: JobView,
  variables: Variables,
  body?: JobBody,
  room?: PolicyRoom,
  timeoutMs?: number,
): string {
  const { record, layers } = view;
  const apart = body ? undefined : takenApart(record.body, record.type);
  const head = body ?? apart?.head ?? writtenBody(record);
  const payload = plainPayload(record, head);
  if (payload === undefined) {
    const whole = apart ? { ...apart.head, args: [] } : (head as JobBody);
    const text = JSON.stringify({ ...renderJob(view, variables, whole, room), ...defined({ timeout_ms: timeoutMs }) });
    // Inside of a text the quotes have backslashes, and no other member with this name comes before.
    return apart ? text.replace('"args":[]', () => `"args":${apart.args}`) : text;
  }
  const { id, type, queue, state, priority, attempt } = record;
  const start = `{"specversion":"1.0","id":"${id}","type":${quoted(type)},"queue":${quoted(queue)},"state":"${state}"`;
  const shown = policyOf(variables, layers, head);
  const policy = (room?.takes(shown) ?? true) ? textOfPolicy(shown) : `"max_attempts":${shown.max_attempts}`;
  const course = textOfCourse(record, head);
  const limit = timeoutMs === undefined ? '' : `,"timeout_ms":${timeoutMs}`;
  return `${start},${payload},"priority":${priority},"attempt":${attempt},${policy},${course}${limit}}`;
}

/** What follows the arguments in every body that the server writes. */
const META = ',"meta":{';

/** Splits a stored body: `args` stay JSON. @returns undefined: it is not in the server's form, and must be parsed */
function takenApart(body: string, type: string): { args: string; head: Head } | undefined {
  const start = `{"type":${JSON.stringify(type)},"args":`;
  const end = body.lastIndexOf(META);
  if (!body.startsWith(start) || end < start.length) return undefined;
  // Inside of the arguments, or of a later member, it would be followed by brackets too many, and not be an object.
  const others = parseObject(`{${body.slice(end + 1)}`, parseExactly);
  return others && { args: body.slice(start.length, end), head: { type, ...others } as Head };
}

const quotes = new Map<string, string>();
const MAX_QUOTES = 1000;

function quoted(text: string): string {
  const known = quotes.get(text);
  if (known !== undefined) return known;
  if (quotes.size >= MAX_QUOTES) quotes.clear();
  const json = JSON.stringify(text);
  quotes.set(text, json);
  return json;
}

/** How the text of such a body begins, before and after its type. */
const TYPE = '{"type":';
const ARGS = ',"args":';

/** `args` and `meta` as they are stored, if the body has nothing else to show. */
function plainPayload(record: JobRecord, body: Head): string | undefined {
  if (!isMinimal(body)) return undefined;
  const { body: text } = record;
  const type = quoted(record.type);
  const start = TYPE.length + type.length;
  const end = body.scheduled_at === undefined ? '}' : `,"scheduled_at":${body.scheduled_at}}`;
  const isPlain = text.startsWith(TYPE) && text.startsWith(type, TYPE.length) && text.startsWith(ARGS, start);
  return isPlain && text.endsWith(end) ? text.slice(start + 1, -end.length) : undefined;
}

function textOfCourse(record: JobRecord, written: Head): string {
  if (isFresh(record)) return textOfFresh(record, startOf(record, written));
  const course: Envelope = {};
  addCourse(course, record, written);
  return JSON.stringify(course).slice(1, -1);
}

/** Is it new or running, with nothing else to show than its times and its runner? Most jobs in answers are. */
function isFresh(record: JobRecord): boolean {
  const { state, history, waiting_for, result, progress, progress_data, checkpoint, steps, lease_ms, lease, chunk } =
    record;
  if (waiting_for !== undefined) return false;
  if (state === 'available' || state === 'scheduled') return isUntouched(record);
  if (state !== 'active' || history.started_at === undefined) return false;
  if ((result ?? progress ?? progress_data ?? checkpoint ?? steps ?? lease_ms ?? lease ?? chunk) !== undefined)
    return false;
  for (const name in history) if (name !== 'started_at') return false;
  return true;
}

/** JSON of a job that {@link isFresh} and whose body only says what to run, and when. */
function textOfFresh(
  { state, created_at, enqueued_at, history, worker_id, delivery_id }: JobRecord,
  scheduledAt: number | undefined,
): string {
  const scheduled = scheduledAt === undefined ? '' : `,"scheduled_at":"${formatInstant(scheduledAt)}"`;
  const times = `"created_at":"${formatInstant(created_at)}","enqueued_at":"${formatInstant(enqueued_at)}"${scheduled}`;
  if (state !== 'active') return times;
  const worker = worker_id === undefined ? '' : `,"worker_id":${quoted(worker_id)}`;
  // Made of an id and a number.
  const delivery = delivery_id === undefined ? '' : `,"delivery_id":"${delivery_id}"`;
  return `${times},"started_at":"${formatInstant(history.started_at as number)}"${worker}${delivery}`;
}
