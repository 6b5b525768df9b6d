/** Reads the format of what a subscription is sent (`docs/operate/webhooks.md`); none or null: the event. */
import { isObject, optional, readText, withinBytes } from '../envelope/fields';
import { isDeeperThan } from '../envelope/nesting';
import { invalidRequest } from '../errors';
import { quote } from '../text';
import { EVENT_MEMBERS, pathsIn, type WebhookForm } from './form';

const MAX_TEMPLATE_BYTES = 16 * 1024;
const MAX_PLACEHOLDERS = 100;
const MAX_DEPTH = 20;

const RULE = 'must be "slack", "pagerduty" or {"template": …}';

const readKey = readText(
  (text) => /^[\x21-\x7e]{1,64}$/.test(text),
  'must be a key of 1 to 64 visible ASCII characters',
);

/** The form that a body names; null removes it, undefined keeps it. @throws {ApiError} 400, 413 */
export function readForm(body: Record<string, unknown>): WebhookForm | null | undefined {
  const { format } = body;
  const key = optional(body, 'routing_key', readKey);
  if (format === 'pagerduty') {
    if (key === undefined) throw invalidRequest('routing_key', 'routing_key is required with the format "pagerduty".');
    return { routing_key: key };
  }
  if (key !== undefined) throw invalidRequest('routing_key', 'routing_key is only for the format "pagerduty".');
  if (format === undefined || format === null || format === 'slack') return format;
  if (!isObject(format) || !('template' in format)) throw invalidRequest('format', `format ${RULE}.`);
  const unknown = Object.keys(format).find((name) => name !== 'template');
  if (unknown !== undefined) {
    throw invalidRequest(`format.${unknown}`, `format.${quote(unknown)} is not known; there is template.`);
  }
  return { template: readTemplate(format.template, 'format.template') };
}

function readTemplate(given: unknown, field: string): unknown {
  const template = typeof given === 'string' ? parsed(given, field) : given;
  if (typeof template !== 'object' || template === null) {
    throw invalidRequest(field, `${field} must be a JSON object or array, or the text of one.`);
  }
  if (isDeeperThan(template, MAX_DEPTH)) throw invalidRequest(field, `${field} must nest no deeper than ${MAX_DEPTH}.`);
  const paths = pathsIn(withinBytes(JSON.stringify(template), MAX_TEMPLATE_BYTES, field));
  if (paths.length > MAX_PLACEHOLDERS) {
    throw invalidRequest(field, `${field} must have at most ${MAX_PLACEHOLDERS} placeholders.`);
  }
  for (const path of paths) {
    const [first = '', ...rest] = path.split('.');
    if (EVENT_MEMBERS.includes(first) && rest.every((name) => name !== '')) continue;
    const known = `A path starts with ${EVENT_MEMBERS.join(', ')}, as in {{data.job_id}}.`;
    throw invalidRequest(field, `${field} has a placeholder {{${quote(path)}}}, which is not in events. ${known}`);
  }
  return template;
}

function parsed(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const hint = 'Write placeholders within quotes: a string that is only a placeholder becomes the value itself.';
    throw invalidRequest(field, `${field} must be JSON. ${hint}`);
  }
}
