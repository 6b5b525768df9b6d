/** Bodies for Slack, PagerDuty, or from a JSON template with placeholders for the event. Nothing is executed. */
import { isObject } from '../../job/envelope/fields';
import { cut } from '../../job/text';

/** The format of what a subscription is sent. Absent: the event itself. */
export type WebhookForm = 'slack' | { routing_key: string } | { template: unknown };

export const EVENT_MEMBERS: readonly string[] = [
  ...['specversion', 'id', 'type', 'source', 'subject', 'time', 'timestamp', 'data'],
];

/** `{{data.job_id}}`. */
const PLACEHOLDER = /\{\{\s*([^{}]*?)\s*\}\}/g;
const NOTHING_ELSE = /^\{\{\s*([^{}]*?)\s*\}\}$/;

/** Characters that a placeholder puts in, and that all of one body put in together. */
const MAX_VALUE = 4_000;
const MAX_FILLED = 256 * 1024;

/** What PagerDuty takes of a summary, and Slack shows without folding it away. */
const MAX_SUMMARY = 1_000;

type Json = Record<string, unknown>;

/** The body to send. @param body the event, as JSON text */
export function bodyIn(form: WebhookForm | undefined, body: string): string {
  if (form === undefined) return body;
  const event = JSON.parse(body) as Json;
  if (form === 'slack') return JSON.stringify(slackOf(event));
  if ('routing_key' in form) return JSON.stringify(pagerDutyOf(event, form.routing_key));
  return JSON.stringify(filled(form.template, event, { left: MAX_FILLED }));
}

// ---- what happened, for humans -------------------------------------------------------------

interface Summary {
  title: string;
  detail: string;
}

function summaryOf({ type, subject, data }: Json): Summary {
  const about = isObject(data) ? data : {};
  const { name, metric, value, above, queue, job_type, error, reason, message } = about;
  const where = queue === undefined ? '' : ` in ${text(queue)}`;
  if (type === 'alert.firing' || type === 'alert.resolved') {
    const verb = type === 'alert.firing' ? 'fires' : 'has resolved';
    const why = reason === undefined ? '' : ` Reason: ${text(reason)}.`;
    return {
      title: `${text(name)} ${verb}${where}`,
      detail: `${text(metric)} is ${text(value)}; the bound is ${text(above)}.${why}`,
    };
  }
  const reported = isObject(error) ? error.message : (error ?? message ?? reason);
  const of = job_type === undefined ? '' : `: ${text(job_type)}`;
  return { title: `${text(type)}${of}${where}`, detail: [reported, subject].filter(Boolean).map(text).join(' – ') };
}

const text = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

// ---- Slack -------------------------------------------------------------------------------------

function slackOf(event: Json): Json {
  const { title, detail } = summaryOf(event);
  return { text: cut(`*${slackText(title)}*\n${slackText(detail)}`.trimEnd(), MAX_SUMMARY) };
}

const slackText = (plain: string): string =>
  cut(plain, MAX_SUMMARY / 4)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');

// ---- PagerDuty ---------------------------------------------------------------------------------

/** Events that end what another one began, by what both are about. */
const RESOLVES: ReadonlyMap<unknown, string> = new Map([
  ['alert.resolved', 'alert.firing'],
  ['queue.resumed', 'queue.paused'],
  ['queue.push_resumed', 'queue.push_suspended'],
]);

const SEVERITIES: ReadonlyMap<unknown, string> = new Map([
  ['alert.firing', 'critical'],
  ['job.discarded', 'error'],
  ['workflow.failed', 'error'],
  ['webhook.disabled', 'error'],
  ['queue.push_suspended', 'error'],
  ['queue.archive_damaged', 'error'],
  ['job.failed', 'warning'],
  ['job.expired', 'warning'],
  ['queue.dead_letters_evicted', 'warning'],
]);

/** As the Events API v2 takes it. */
function pagerDutyOf(event: Json, routing_key: string): Json {
  const { type, subject, source, time } = event;
  const data = isObject(event.data) ? event.data : {};
  const begun = RESOLVES.get(type);
  const about = data.alert_id === undefined ? subject : `${text(data.alert_id)}/${text(data.queue)}`;
  const { title, detail } = summaryOf(event);
  return {
    routing_key,
    event_action: begun === undefined ? 'trigger' : 'resolve',
    dedup_key: cut(`tocsin/${begun ?? text(type)}/${text(about)}`, 255),
    payload: {
      summary: cut(detail === '' ? title : `${title}: ${detail}`, MAX_SUMMARY),
      source: text(source),
      severity: SEVERITIES.get(type) ?? 'info',
      timestamp: time,
      class: type,
      ...(data.queue !== undefined && { group: data.queue }),
      custom_details: data,
    },
  };
}

// ---- a template of its own ---------------------------------------------------------------------

export const pathsIn = (template: string): string[] =>
  Array.from(template.matchAll(PLACEHOLDER), ([, path = '']) => path);

interface Budget {
  left: number;
}

/** A text that is only a placeholder becomes the value itself; within a text, values become texts. */
function filled(template: unknown, event: Json, budget: Budget): unknown {
  if (typeof template === 'string') return filledText(template, event, budget);
  if (Array.isArray(template)) return template.map((entry) => filled(entry, event, budget));
  if (!isObject(template)) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, filled(value, event, budget)]));
}

function filledText(template: string, event: Json, budget: Budget): unknown {
  const [, only] = NOTHING_ELSE.exec(template) ?? [];
  if (only !== undefined) {
    const value = valueAt(event, only);
    return spend(budget, (JSON.stringify(value) ?? '').length) ? (value ?? null) : null;
  }
  return template.replace(PLACEHOLDER, (_, path: string) => {
    const value = valueAt(event, path);
    const shown = value === undefined || value === null ? '' : cut(text(value), MAX_VALUE);
    return spend(budget, shown.length) ? shown : '';
  });
}

/** What would make the body too large is left out. */
function spend(budget: Budget, length: number): boolean {
  if (length > budget.left) return false;
  budget.left -= length;
  return true;
}

/** Own members only: a path leads nowhere else. */
function valueAt(event: Json, path: string): unknown {
  let at: unknown = event;
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = Reflect.get(at, name);
  }
  return at;
}
