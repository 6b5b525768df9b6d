import { useState } from 'preact/hooks';
import { Badge } from './badge';
import { Button } from './button';
import { Code, Json } from './json';
import { Duration, Foreign } from './text';
import './error.css';

export interface JobError {
  attempt?: number;
  type?: string;
  code?: string;
  message?: string;
  retryable?: boolean;
  details?: unknown;
  stack?: string;
  reason?: string | null;
  backoff_ms?: number | null;
}

export function ErrorOf({ error, isOpen = false }: { error: JobError; isOpen?: boolean }) {
  const { type, code, message = '', stack, details, retryable, reason, backoff_ms: backoff } = error;
  return (
    <div class="error-of">
      <p>
        <strong class="red">
          <bdi>{type ?? code ?? 'Error'}</bdi>
        </strong>
        {code !== undefined && code !== type && (
          <code class="faint">
            <bdi>{code}</bdi>
          </code>
        )}
        {retryable === false && <Badge look={['red']} text="not retryable" />}
        {reason && <Badge text={reason} />}
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
          <Code text={stack} label="stack" />
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
