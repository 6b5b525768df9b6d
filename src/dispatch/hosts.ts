/**
 * The hosts that jobs may name as targets, none by default: otherwise any producer could make this deployment call
 * and sign anything.
 *
 *     ALLOWED_TARGET_HOSTS = "app.example *.hooks.example"
 *
 * Each entry is a target with its own health.
 */
import type { Reader } from '../job/envelope/fields';
import { invalidConfiguration, invalidRequest } from '../job/errors';
import { readListVariable } from '../job/list-variable';
import { quote } from '../job/text';
import { TARGET_DEFAULTS, type TargetConfig } from './config';
import { Remote } from './remote';
import { readDefaultSigning } from './signing';
import { type Allows, isLoopback, isPublicName, parseTargetUrl, TARGET_URL_RULE } from './target-url';

const VARIABLE = 'ALLOWED_TARGET_HOSTS';

/** Reads host names, or `*.name`, separated by spaces or commas. @throws {ApiError} 500 `invalid_configuration` */
export function readHostTargets(env: Record<string, unknown>, allows: Allows): TargetConfig[] {
  const entries = [...new Set(readListVariable(VARIABLE, env[VARIABLE]))];
  if (entries.length === 0) return [];
  const signing = readDefaultSigning(env, VARIABLE);
  return entries.map((entry) => {
    const isHost = isPublicName(entry.replace(/^\*\./, '')) || (allows.loopback && isLoopback(entry));
    if (!isHost) {
      const message = `${VARIABLE}: ${quote(JSON.stringify(entry))} must be a public host name such as app.example or *.app.example.`;
      throw invalidConfiguration(message, { variable: VARIABLE, host: entry });
    }
    return {
      id: `url:${entry}`,
      name: entry,
      binding: new Remote(signing),
      isRemote: true,
      mayEnqueue: [],
      patterns: [],
      takesUrl: (url) => {
        const host = parseTargetUrl(url, allows)?.host;
        return host !== undefined && (entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : host === entry);
      },
      ...TARGET_DEFAULTS,
    };
  });
}

/** Reads the URL that a job names. @throws {ApiError} 400 for one that no host of the list has */
export function targetReader(targets: readonly TargetConfig[], allows: Allows): Reader<string> {
  return (value, field) => {
    const url = typeof value === 'string' ? parseTargetUrl(value, allows) : undefined;
    if (!url) throw invalidRequest(field, `${field} ${TARGET_URL_RULE}.`);
    if (targets.some(({ takesUrl }) => takesUrl?.(url.href))) return url.href;
    throw invalidRequest(
      field,
      `${field}: jobs may not be sent to ${quote(url.host)}; ${VARIABLE} lists where they may.`,
    );
  };
}
