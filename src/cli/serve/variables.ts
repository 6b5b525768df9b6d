/** The Workers' variables. Secrets come from environment or file, never from arguments or configurations. */
import { parseEnv } from 'node:util';
import { readApiKeys } from '../../access/access';
import { readLoginSettings } from '../../access/login';
import { nearMiss } from '../../job/near-miss';
import { own } from '../../job/own';
import { RETRY_VARIABLES } from '../../job/retry/variables';
import { orThrow } from '../../job/thrown';
import { CliError, readText, usageError } from '../failure';

/** What the queue reads of its variables: these are taken from the environment without being named. */
export const OF_THE_QUEUE: readonly string[] = [
  'API_KEYS',
  'REDACT',
  'ALLOW_LOCALHOST',
  'ALLOWED_ORIGINS',
  'HANDLERS',
  'TARGET_SECRET',
  'TARGET_SIGNATURE',
  'ALLOWED_TARGET_HOSTS',
  ...RETRY_VARIABLES,
  'MAX_HANDLER_PAUSE_MS',
  'MAX_NEW_QUEUES',
  'MAX_STORAGE_BYTES',
  'DATA_LOCATION',
  'TOKEN_SECRET',
  'PUBLIC_URL',
  'LOGIN',
  'LOGIN_SECRET',
];

type Values = Record<string, string>;

/** `queue`: its own, because its keys do not concern handlers. */
export type ServeVariables = Record<'queue' | 'shared' | 'runtime', Values>;

export interface VariableSources {
  env: Readonly<Record<string, string | undefined>>;
  /** A file of lines `NAME=value`. */
  file?: string | undefined;
  /** Names that are taken from the environment, too. */
  named: readonly string[];
  /** Names of what the runtime needs, if anything. Workers get these only where they are named. */
  ofRuntime?: readonly string[];
}

/** Reads the variables. The environment goes before the file. @throws {CliError} */
export function readVariables({ env, file, named, ofRuntime = [] }: VariableSources): ServeVariables {
  const given = file === undefined ? {} : (parseEnv(readText(file, 'Name a file of lines NAME=value.')) as Values);
  const missing = named.find((name) => !own(env, name) && own(given, name) === undefined);
  if (missing !== undefined) throw usageError(`The environment has no ${missing}, which --pass-env names.`);
  const isOwn = (name: string) => OF_THE_QUEUE.includes(name);
  const all = { ...given };
  for (const name of [...OF_THE_QUEUE, ...ofRuntime, ...Object.keys(given), ...named]) {
    const value = own(env, name);
    // One that is empty is as if it were not there: it must not take the keys of the file away.
    if (value) all[name] = value;
  }
  const only = (isWanted: (name: string) => boolean) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => isWanted(name)));
  const isShared = (name: string) => !isOwn(name) && (!ofRuntime.includes(name) || named.includes(name));
  return { queue: only(isOwn), shared: only(isShared), runtime: only((name) => ofRuntime.includes(name)) };
}

/** How many keys `API_KEYS` has, as the queue reads them. @throws {CliError} where it would refuse every call */
export const countKeys = (text: unknown): number => readAs('API_KEYS', () => readApiKeys(text).length);

/**
 * Is there a login, as the queue reads `LOGIN`? @param secret null: it is not known here
 * @throws {CliError} where the queue would refuse every call
 */
export const hasLogin = (login: unknown, secret: unknown): boolean =>
  readAs('LOGIN', () => readLoginSettings(login, secret) !== undefined);

const readAs = <T>(variable: string, read: () => T): T =>
  orThrow(read, (error) => {
    const hint = `Correct the variable ${variable}: the queue would refuse every call.`;
    return new CliError((error as Error).message, hint, 'invalid_configuration');
  });

/** What to say of names that are nearly those of a variable of the queue, which has no effect under them. */
export const misspelt = (names: readonly string[]): string[] =>
  names.flatMap((name) => {
    const meant = nearMiss(name, OF_THE_QUEUE);
    return meant === undefined ? [] : [`the variable ${name} is not known to the queue; did you mean ${meant}?`];
  });
