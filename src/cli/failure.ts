/** How a command fails: one line, one hint, an exit code. Never a stack. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { defined } from '../job/envelope/fields';
import { own } from '../job/own';
import { NotFoundError, TocsinError, UnauthorizedError } from '../producer/errors';

export const EXIT = { ok: 0, failure: 1, usage: 2 } as const;

export class CliError extends Error {
  constructor(
    message: string,
    readonly hint?: string,
    readonly code = 'failed',
    readonly exitCode: number = EXIT.failure,
  ) {
    super(message);
  }
}

export const usageError = (message: string, hint?: string): CliError =>
  new CliError(message, hint, 'usage', EXIT.usage);

/** Why a file could not be written, in words; anything else as it is. */
export function notWritten(path: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return error;
  const missing = code === 'ENOENT' ? missingFolder(path) : undefined;
  if (missing) return new CliError(missing.message, missing.hint, 'not_written');
  const hint = code === 'ENOSPC' || code === 'EDQUOT' ? 'Free some space, or name another disk.' : undefined;
  return new CliError(`${path} cannot be written: ${reasonOf(error)}.`, hint, 'not_written');
}

export interface PrintedFailure {
  code: string;
  message: string;
  hint?: string | undefined;
  request_id?: string;
  exitCode: number;
}

/** Where the queue was looked for, and with which key. */
export interface Endpoint {
  url: string;
  key?: string | undefined;
}

/** Any error in the words of the command line. */
export function failureOf(error: unknown, where?: Endpoint): PrintedFailure {
  if (error instanceof CliError) {
    const { code, message, hint, exitCode } = error;
    return defined({ code, message, hint, exitCode });
  }
  if (error instanceof TocsinError) {
    const { code, requestId: request_id } = error;
    return defined({ code, ...wordsOf(error, where), request_id, exitCode: EXIT.failure });
  }
  return { code: 'failed', ...(fileFailure(error) ?? { message: reasonOf(error) }), exitCode: EXIT.failure };
}

/** What a file system answers, by the codes of Node. */
const FILE_CAUSES: Readonly<Record<string, string>> = {
  EACCES: 'this user may not read or write it',
  EEXIST: 'it exists already',
  EISDIR: 'it is a folder',
  EMFILE: 'too many files are open',
  ENOENT: 'there is no such file',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is not a folder',
  EPERM: 'this user may not read or write it',
  EROFS: 'the file system is read-only',
};

/** Why something failed, on one line: of a file in words, not in codes. */
export function reasonOf(error: unknown): string {
  const known = fileCause(error);
  if (known) return known;
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n')[0] ?? message;
}

/** The text of a file. @throws {CliError} where it cannot be read */
export function readText(file: string, hint?: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${reasonOf(error)}.`, hint);
  }
}

/**
 * Makes a folder and its parents. Not by Node's `recursive`, which never returns where a file system denies that a
 * folder to make exists, as `/proc` does. @param mode of each that is made @throws {CliError}
 */
export function makeFolder(path: string, mode?: number): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path), mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Another process made it meanwhile.
    if (code === 'EEXIST' && existsSync(path)) return;
    const why = code === 'ENOENT' ? 'its file system takes no new folders' : reasonOf(error);
    throw new CliError(`The folder ${path} cannot be created: ${why}.`, 'Name another one.', 'not_written');
  }
}

/** What is read, or `none` where there is no such thing. */
export const orNone = async <T, N>(reading: Promise<T>, none: N): Promise<T | N> =>
  await reading.catch((error: unknown) => {
    if (error instanceof NotFoundError) return none;
    throw error;
  });

function fileCause(error: unknown): string | undefined {
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  return error instanceof Error && syscall !== undefined ? own(FILE_CAUSES, code) : undefined;
}

function fileFailure(error: unknown): { message: string; hint?: string } | undefined {
  const cause = fileCause(error);
  if (cause === undefined) return undefined;
  const { code, path = 'a file' } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT') return { message: `Cannot read or write ${path}: ${cause}.` };
  const missing = missingFolder(path);
  if (missing) return missing;
  return { message: `There is no file ${path}.`, hint: `Check its path: it is looked for from ${process.cwd()}.` };
}

function missingFolder(path: string): { message: string; hint: string } | undefined {
  const folder = dirname(resolve(path));
  if (existsSync(folder)) return undefined;
  return { message: `There is no folder ${folder}.`, hint: 'Create it, or name another path.' };
}

function wordsOf(error: TocsinError, where: Endpoint | undefined): { message: string; hint: string | undefined } {
  const { code, status, message } = error;
  const at = where?.url ?? 'this address';
  if (code === 'network_error') {
    const start = isLocal(where) ? 'Start it with "npx tocsin dev", or set' : 'Set';
    const hint = `${start} its address with --url or TOCSIN_URL.`;
    return { message: `No queue answers at ${at}: ${causeOf(error)}.`, hint };
  }
  if (code === 'redirected') return { message, hint: 'Set the address that it leads to with --url or TOCSIN_URL.' };
  // A queue reports errors in JSON, with a code of its own.
  if (code === `http_${status}` && status >= 500) {
    const hint = 'A proxy answered, or the Worker fails. See its log with: npx wrangler tail';
    return { message: `${at} answered ${status} without an error of the queue.`, hint };
  }
  if (code === 'invalid_response' || code === `http_${status}`) {
    const hint = 'If the queue is mounted below a path, include it in the address: https://example.com/tocsin.';
    return { message: `${at} is not a Tocsin queue: ${message}`, hint };
  }
  if (error instanceof UnauthorizedError) return { message, hint: keyHint(error, where) };
  // A terminal shows no details of an answer.
  if (error.hint?.includes('details.field')) {
    const { field } = error.details;
    return { message, hint: typeof field === 'string' ? `Correct ${field} and run the command again.` : undefined };
  }
  return { message, hint: error.hint };
}

function keyHint({ status, hint, message }: UnauthorizedError, where: Endpoint | undefined): string | undefined {
  if (status === 403) return `This key lacks a scope.${hint ? ` ${hint}` : ''}`;
  // Whatever key is given: it has none.
  if (/no API key/.test(message)) return hint;
  if (where?.key !== undefined) {
    return 'Check that the key in --key or TOCSIN_KEY is one of API_KEYS of this deployment.';
  }
  const local = isLocal(where)
    ? ' In development, keys are in API_KEYS in .dev.vars; without API_KEYS no key is needed.'
    : '';
  return `Pass a key with --key or TOCSIN_KEY.${local}`;
}

function isLocal(where: Endpoint | undefined): boolean {
  const host = where && URL.canParse(where.url) ? new URL(where.url).hostname : '';
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$|\.localhost$/.test(host);
}

/** What ended a connection, by the codes of Node. */
const CAUSES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection broke off',
  UND_ERR_SOCKET: 'the connection broke off',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name of the host could not be looked up',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the connection took too long',
  UND_ERR_CONNECT_TIMEOUT: 'the connection took too long',
};

/** The innermost cause: `fetch failed` alone explains nothing. */
function causeOf(error: Error): string {
  let last = error;
  for (;;) {
    // There was one attempt for each address of the host.
    const cause: unknown = last instanceof AggregateError ? last.errors[0] : last.cause;
    if (!(cause instanceof Error)) break;
    last = cause;
  }
  if (last.name === 'TimeoutError') return 'it took too long';
  const { code } = last as NodeJS.ErrnoException;
  const words = code === undefined ? undefined : own(CAUSES, code);
  return words === undefined ? (last.message.split('\n')[0] ?? '').replace(/\.$/, '') : `${words} (${code})`;
}
