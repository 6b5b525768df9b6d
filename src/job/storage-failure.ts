/** Failures of storage that pass without a change of code, by the texts in which the runtime reports them. */
import { type ErrorData, unavailable } from './errors';

/** A full disk is looked after by a person: earlier tries are in vain, seconds. */
const RETRY_AFTER_S = 30;

const ROOM = 'Free space where the server stores its state (the folder of --state). Nothing that was accepted is lost.';

const FAILURES: readonly { text: RegExp; type: string; message: string; hint?: string }[] = [
  { text: /\bSQLITE_FULL\b/, type: 'disk_full', message: 'The storage of this server is full.', hint: ROOM },
  {
    text: /\bSQLITE_(IOERR|CANTOPEN|READONLY|BUSY|NOMEM)/,
    type: 'storage_failed',
    message: 'The storage of this server cannot be read or written.',
  },
  // A commit that fails after the code has gone on is reported without its cause.
  {
    text: /^internal error; reference = /,
    type: 'storage_failed',
    message: 'The runtime failed, most likely because its storage cannot be written.',
  },
];

/** The answer to a request that failed for such a reason: 503 with `Retry-After`; undefined: it is another failure. */
export function storageFailure(thrown: unknown): ErrorData | undefined {
  const failure = thrown instanceof Error ? FAILURES.find(({ text }) => text.test(thrown.message)) : undefined;
  if (!failure) return undefined;
  const { text: _, message, ...rest } = failure;
  return { ...unavailable(message, RETRY_AFTER_S).data, ...rest };
}
