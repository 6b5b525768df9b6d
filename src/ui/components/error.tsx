import { useState } from 'preact/hooks';
import type { EnvelopeError } from '../../job/wire';
import { counted } from '../core/format';
import { Button } from './button';
import { Code, Json } from './json';
import { Badge, Duration, Foreign } from './text';
import './error.css';

export type JobError = Partial<EnvelopeError>;

/** Codes of jobs that ended as they were meant to: `discard()`, a cancellation, an expiry. */
const INTENDED = /^(discard|discard_code|cancelled|expired)$/i;

/** Did the job end as its handler or its options wanted, not by a mistake? */
export const isIntended = ({ code }: { code?: string | undefined }): boolean => INTENDED.test(code ?? '');

const FRAME = /^\s*at /;
const FOREIGN_FRAME = /node_modules|\bnode:|\bcloudflare:|tocsin\/dist\//;

/** The stack without the frames of libraries; undefined where that would be all of it, or nothing. */
function ownStack(stack: string): string | undefined {
  const lines = stack.split('\n');
  const own = lines.filter((line) => !(FRAME.test(line) && FOREIGN_FRAME.test(line)));
  return own.length < lines.length && own.some((line) => FRAME.test(line)) ? own.join('\n') : undefined;
}

function Stack({ text }: { text: string }) {
  const own = ownStack(text);
  if (own === undefined) return <Code text={text} label="stack" />;
  return (
    <>
      <Code text={own} label="stack" />
      <details>
        <summary>With {counted(text.split('\n').length - own.split('\n').length, 'frame')} of libraries</summary>
        <Code text={text} label="whole stack" />
      </details>
    </>
  );
}

export function ErrorOf({ error, isOpen = false }: { error: JobError; isOpen?: boolean }) {
  const { type, code, message = '', stack, details, retryable, reason, backoff_ms: backoff } = error;
  return (
    <div class="error-of">
      <p>
        <strong class={isIntended(error) ? '' : 'red'}>
          <bdi>{type ?? code ?? 'Error'}</bdi>
        </strong>
        {code !== undefined && code !== type && (
          <code class="faint">
            <bdi>{code}</bdi>
          </code>
        )}
        {isIntended(error) && <Badge text="intended" />}
        {retryable === false && <Badge look={['red']} text="not retryable" />}
        {reason && <Badge text={reason.replaceAll('_', ' ')} />}
      </p>
      <p class="message">
        <Long text={message} />
      </p>
      {typeof backoff === 'number' && (
        <p class="faint">
          The next attempt was delayed by <Duration ms={backoff} />.
        </p>
      )}
      {stack && (
        <details open={isOpen && stack.length < 4_000}>
          <summary>Stack</summary>
          <Stack text={stack} />
        </details>
      )}
      {details !== undefined && details !== null && (
        <details>
          <summary>Details</summary>
          <Json value={details} label="details" open={2} />
        </details>
      )}
    </div>
  );
}

const MAX_MESSAGE = 600;

function Long({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  if (isWhole || text.length <= MAX_MESSAGE) return <Foreign>{text}</Foreign>;
  return (
    <>
      <Foreign>{text.slice(0, MAX_MESSAGE)}</Foreign>
      <Button label="… all of it" class="link" onClick={() => setWhole(true)} />
    </>
  );
}
