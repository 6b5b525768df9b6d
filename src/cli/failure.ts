/** How a command fails: one line, one hint, an exit code. Never a stack. */
import { NotFoundError, TocsinError, UnauthorizedError } from '../producer/errors';

/** Exit codes of the program. */
export const EXIT = { ok: 0, failure: 1, usage: 2 } as const;

/** A failure that the command itself found. */
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

/** Wrong arguments. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError(message, hint, 'usage', EXIT.usage);
}

/** A failure as it is printed. */
export interface Failure {
  code: string;
  message: string;
  hint?: string;
  request_id?: string;
  exitCode: number;
}

/**
 * Any error in the words of the command line.
 * @param url where the queue was looked for
 */
export function failureOf(error: unknown, url?: string): Failure {
  if (error instanceof CliError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.hint !== undefined && { hint: error.hint }),
      exitCode: error.exitCode,
    };
  }
  if (error instanceof TocsinError) {
    const hint = hintFor(error, url);
    return {
      code: error.code,
      message: error.code === 'network_error' ? `No queue answers at ${url ?? 'this address'}.` : error.message,
      ...(hint !== undefined && { hint }),
      ...(error.requestId !== undefined && { request_id: error.requestId }),
      exitCode: EXIT.failure,
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: 'failed', message: message.split('\n')[0] ?? message, exitCode: EXIT.failure };
}

function hintFor(error: TocsinError, url: string | undefined): string | undefined {
  if (error.code === 'network_error') {
    return 'Start it with "npx tocsin dev", or name its address with --url or TOCSIN_URL.';
  }
  if (error.code === 'invalid_response' || error.code === 'http_404') {
    return `Something else answers at ${url ?? 'this address'}: is the queue mounted below another path?`;
  }
  if (error instanceof UnauthorizedError) {
    return error.status === 403
      ? `This key lacks a scope.${error.hint ? ` ${error.hint}` : ''}`
      : 'Give a key with --key or TOCSIN_KEY; in development, ALLOW_LOCALHOST=true in .dev.vars makes it unnecessary.';
  }
  if (error instanceof NotFoundError && error.hint === undefined) return 'Ended jobs go after their retention.';
  return error.hint;
}
