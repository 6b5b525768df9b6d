import { type ApiError, invalidConfiguration } from '../job/errors';
import { own } from '../job/own';
import type { Signing } from './remote';
import { parseSecrets, SECRET_RULE, SIGNATURES, type Signature } from './signature';

/** The variables for URLs without settings of their own. */
const DEFAULT_SECRET = 'TARGET_SECRET';
const DEFAULT_SIGNATURE = 'TARGET_SIGNATURE';

const USUAL: readonly Signature[] = ['standard', 'ojs'];

type Values = Record<string, unknown>;

/** Makes the error of an entry of a table. */
export type Wrong = (message: string, details?: Values) => ApiError;

/** The signing of an entry, from its members, else the variables. @throws {ApiError} 500 `invalid_configuration` */
export function readSigning(key: string, options: Values, env: Values, wrong: Wrong): Signing {
  const own = options.signature === undefined ? undefined : parseSignatures(options.signature);
  if (own === undefined && options.signature !== undefined) {
    throw wrong(`"${key}": signature must be one or more of ${SIGNATURES.join(', ')}`, { key, option: 'signature' });
  }
  return { signatures: own ?? defaultSignatures(env), secrets: readSecrets(key, options, env, wrong) };
}

/** The signing by the variables alone. @param who needs it, for messages */
export function readDefaultSigning(env: Values, who: string): Signing {
  return { signatures: defaultSignatures(env), secrets: readSecretVariable(DEFAULT_SECRET, env, who) };
}

function parseSignatures(value: unknown): readonly Signature[] | undefined {
  const given: unknown[] = Array.isArray(value) ? value : [value];
  const known = SIGNATURES.filter((name) => given.includes(name));
  return known.length > 0 && known.length === given.length ? known : undefined;
}

function defaultSignatures(env: Values): readonly Signature[] {
  const text = env[DEFAULT_SIGNATURE];
  if (text === undefined || text === '') return USUAL;
  const signatures = typeof text === 'string' ? parseSignatures(text.split(/[\s,]+/).filter(Boolean)) : undefined;
  if (signatures) return signatures;
  const message = `${DEFAULT_SIGNATURE} must be one or more of ${SIGNATURES.join(', ')}.`;
  throw invalidConfiguration(message, { variable: DEFAULT_SIGNATURE });
}

/** An unsigned call could be forged by anyone, so there is always a secret. */
function readSecrets(key: string, options: Values, env: Values, wrong: Wrong): string[] {
  const { secret, secret_binding: variable = DEFAULT_SECRET } = options;
  if (secret !== undefined) {
    if (options.secret_binding !== undefined) {
      throw wrong(`"${key}": secret and secret_binding exclude each other`, { key, option: 'secret' });
    }
    const secrets = typeof secret === 'string' ? parseSecrets(secret) : undefined;
    if (secrets) return secrets;
    throw wrong(`"${key}": secret ${SECRET_RULE}`, { key, option: 'secret' });
  }
  if (typeof variable !== 'string') {
    throw wrong(`"${key}": secret_binding must name a variable`, { key, option: 'secret_binding' });
  }
  return readSecretVariable(variable, env, `HANDLERS: "${key}"`);
}

function readSecretVariable(variable: string, env: Values, who: string): string[] {
  const text = own(env, variable);
  if (text === undefined || text === '') {
    const message = `${who} needs a secret to sign with: set ${variable} (wrangler secret put ${variable}).`;
    throw invalidConfiguration(message, { variable, missing: [variable] });
  }
  const secrets = typeof text === 'string' ? parseSecrets(text) : undefined;
  if (secrets) return secrets;
  throw invalidConfiguration(`${variable} ${SECRET_RULE}.`, { variable });
}
