/** Equal failures: same type, class, code, and message without numbers, ids, quotes, paths, times. Never stored. */
import { fnv1a } from '../fnv';
import { cut } from '../text';

/** Characters of a message that are looked at, and of a normalised one that are kept. */
export const MAX_LOOKED_AT = 1000;
const MAX_NORMALISED = 300;

export interface Failure {
  type: string;
  /** Class and code of the error; of a job that was discarded without one, why. */
  error_type: string;
  code: string;
  message: string;
}

/** In this order: what comes later would tear apart what comes first. */
const RULES: readonly [RegExp, string][] = [
  [/\b[a-z][a-z0-9+.-]{1,15}:\/\/[^\s"'<>`]+/giu, '<url>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/giu, '<uuid>'],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)/gu, '<time>'],
  [/"[^"]*"|`[^`]*`|“[^”]*”|«[^»]*»|(?<![\p{L}\p{N}])'[^']*'(?![\p{L}\p{N}])/gu, '<text>'],
  [/(?<![\p{L}\p{N}/\\])(?:[a-z]:|\.{1,2}|~)?(?:[\\/][\p{L}\p{N}_.@~+-]+){2,}[\\/]?/giu, '<path>'],
  [/\b0x[0-9a-f]+\b/giu, '<hex>'],
  [/\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b/giu, '<hex>'],
  [/(?:(?<![\p{L}\p{N}_])[-+])?\p{Nd}+(?:[.,:_]\p{Nd}+)*/gu, '<n>'],
  [/\s+/gu, ' '],
];

/** The message without what differs from job to job; short, and without half characters. */
export function normaliseMessage(message: string): string {
  let text = cut(message, MAX_LOOKED_AT).toWellFormed();
  for (const [pattern, name] of RULES) text = text.replace(pattern, name);
  return cut(text.trim(), MAX_NORMALISED);
}

/** Names the group of a failure: 16 hexadecimal digits. */
export function fingerprintOfFailure({ type, error_type, code, message }: Failure): string {
  const text = JSON.stringify([type, error_type, code, normaliseMessage(message)]);
  return hex(mixed(fnv1a(text))) + hex(mixed(fnv1a(text, 0x9e3779b9)));
}

export const isFingerprint = (text: string): boolean => /^[0-9a-f]{16}$/.test(text);

function mixed(hash: number): number {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

const hex = (value: number): string => value.toString(16).padStart(8, '0');
