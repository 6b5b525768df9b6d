/** The deployment's defaults, from variables: a limit, and one formula (polynomial, in s, uncapped), whole or not. */
import { parseDuration } from '../duration';
import { invalidConfiguration } from '../errors';
import { own } from '../own';
import { MAX_ATTEMPTS, MAX_COEFFICIENT } from './layer';
import type { RetryLayer } from './policy';

/** Environment variables by name; an empty string counts as unset. */
export type RetryVariables = Readonly<Record<string, string | undefined>>;

const LIMIT = 'DEFAULT_RETRY_LIMIT';
const BASE = 'DEFAULT_BACKOFF_BASE';
const EXPONENT = 'DEFAULT_BACKOFF_EXPONENT';
const JITTER = 'DEFAULT_BACKOFF_JITTER';
const FORMULA = [BASE, EXPONENT, JITTER];

export const RETRY_VARIABLES: readonly string[] = [LIMIT, ...FORMULA];

const NUMBER = /^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const DIGITS = /^\d+$/;

let remembered: { key: string; layer: RetryLayer } | undefined;

/**
 * Reads the variables as a layer. The last result is cached: variables do not change while an isolate lives.
 * @throws {ApiError} 500 `invalid_configuration`: the formula is incomplete (`details.missing`) or a value cannot be
 * read (`details.variable`)
 */
export function variablesLayer(variables: RetryVariables | undefined): Readonly<RetryLayer> {
  if (!variables) return {};
  const key = JSON.stringify(RETRY_VARIABLES.map((name) => own(variables, name) ?? ''));
  if (remembered?.key !== key) remembered = { key, layer: readVariables(variables) };
  return remembered.layer;
}

function readVariables(variables: RetryVariables): RetryLayer {
  const isSet = (name: string): boolean => (own(variables, name) ?? '') !== '';
  const missing = FORMULA.filter((name) => !isSet(name));
  if (missing.length > 0 && missing.length < FORMULA.length) {
    throw invalidConfiguration(`${BASE}, ${EXPONENT} and ${JITTER} form one formula: set all three or none`, {
      missing,
    });
  }
  const read = (name: string, parse: (text: string) => number | undefined, expected: string): number => {
    const parsed = parse(String(own(variables, name)));
    if (parsed !== undefined) return parsed;
    throw invalidConfiguration(`${name} must be ${expected}`, { variable: name });
  };

  const layer: RetryLayer = {};
  if (isSet(LIMIT)) {
    layer.max_attempts = read(LIMIT, parseLimit, `an integer from 0 to ${MAX_ATTEMPTS - 1}`) + 1;
  }
  if (missing.length === 0) {
    layer.backoff_strategy = 'polynomial';
    layer.initial_interval = 1000;
    layer.first_index = 1;
    layer.max_interval = null;
    layer.offset = read(BASE, parseDuration, 'a duration such as 15s or PT15S');
    layer.backoff_coefficient = read(EXPONENT, parseExponent, `a number from 0 to ${MAX_COEFFICIENT}`);
    const amount = read(JITTER, parseDuration, 'a duration such as 30s or PT30S, or 0');
    layer.jitter = amount > 0 && { kind: 'per_attempt', amount, step: 0, deterministic: false };
  }
  return layer;
}

const parseLimit = (text: string): number | undefined =>
  DIGITS.test(text) && Number(text) < MAX_ATTEMPTS ? Number(text) : undefined;

const parseExponent = (text: string): number | undefined =>
  NUMBER.test(text) && Number(text) <= MAX_COEFFICIENT ? Number(text) : undefined;
