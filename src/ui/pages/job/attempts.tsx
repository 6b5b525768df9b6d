/** Attempts on one time scale, with the wait before each; below, one by one with their errors. */
import { useState } from 'preact/hooks';
import type { JobAttempt } from '../../../contract/jobs';
import { Badge, type Tone } from '../../components/badge';
import { ErrorOf } from '../../components/error';
import { Button, Duration, Foreign, Left, Time } from '../../components/text';
import { useNow } from '../../core/clock';
import { duration, number } from '../../core/format';
import { isAsleep, type Job } from './types';

/** Attempts that are drawn and listed at first: the newest. */
const SHOWN = 20;

const TONES: Readonly<Record<JobAttempt['state'], Tone>> = { failed: 'red', active: 'violet', completed: 'green' };

export function Attempts({ of: job }: { of: Job }) {
  const [all, setAll] = useState(false);
  const { attempts } = job;
  const asleep = <Asleep of={job} />;
  if (attempts.length === 0) return isAsleep(job) ? asleep : <p class="faint">No attempts yet.</p>;
  const shown = all ? attempts : attempts.slice(-SHOWN);
  return (
    <>
      {isAsleep(job) && asleep}
      <Bars job={job} attempts={shown} />
      {shown.length < attempts.length && (
        <Button class="link" onClick={() => setAll(true)}>
          Show all {number(attempts.length)}
        </Button>
      )}
      <ol class="attempts">
        {[...shown].reverse().map((attempt, index) => (
          <AttemptItem key={`${attempt.attempt} ${attempt.ended_at}`} of={attempt} isOpen={index === 0} />
        ))}
      </ol>
    </>
  );
}

/** An attempt that sleeps has begun, but has no end to be listed with. */
function Asleep({ of: { attempt, started_at, waiting_for: waiting } }: { of: Job }) {
  return (
    <p>
      Attempt {number(attempt + 1)} began <Time at={started_at} />
      {waiting?.signal === undefined ? ' and sleeps' : <Foreign before=" and waits for ">{waiting.signal}</Foreign>}
      {waiting?.until && (
        <>
          , <Left until={waiting.until} /> left
        </>
      )}
      .
    </p>
  );
}

/** Shortest piece of the drawing, in percent of its width. */
const LEAST = 0.7;

interface Piece {
  attempt: JobAttempt;
  /** Epoch ms. */
  from: number;
  to: number;
}

function Bars({ job, attempts }: { job: Job; attempts: readonly JobAttempt[] }) {
  const now = useNow();
  const pieces = attempts.flatMap((attempt): Piece[] => {
    const to = attempt.ended_at ? Date.parse(attempt.ended_at) : now;
    const from = attempt.started_at ? Date.parse(attempt.started_at) : to;
    return Number.isNaN(from) ? [] : [{ attempt, from, to: Math.max(from, to) }];
  });
  const first = pieces[0];
  if (!first) return null;
  const begin =
    attempts.length < job.attempts.length ? first.from - (first.attempt.delay_ms ?? 0) : Date.parse(job.created_at);
  const next = job.next_attempt_at ? Date.parse(job.next_attempt_at) : 0;
  const end = Math.max(begin + 1, next, ...pieces.map(({ to }) => to));
  const x = (at: number) => (100 * (Math.max(begin, at) - begin)) / (end - begin);
  return (
    <div class="bars" role="img" aria-label={describe(pieces, begin, end)}>
      {pieces.map(({ attempt, from, to }, index) => {
        const before = index === 0 ? begin : (pieces[index - 1] as Piece).to;
        const width = Math.max(LEAST, x(to) - x(from));
        return (
          <div class="bar-row" key={`${attempt.attempt} ${from}`}>
            <span class="label">{attempt.attempt}</span>
            <span class="track">
              <i class="wait" style={{ left: `${x(before)}%`, width: `${Math.max(0, x(from) - x(before))}%` }} />
              <i
                class={`run ${TONES[attempt.state]}`}
                style={{ left: `${Math.min(x(from), 100 - width)}%`, width: `${width}%` }}
              />
            </span>
            <span class="length">{duration(to - from)}</span>
          </div>
        );
      })}
      {next > 0 && (
        <div class="bar-row">
          <span class="label">{(attempts.at(-1)?.attempt ?? 0) + 1}</span>
          <span class="track">
            <i
              class="wait"
              style={{ left: `${x(pieces.at(-1)?.to ?? begin)}%`, width: `${100 - x(pieces.at(-1)?.to ?? begin)}%` }}
            />
            <i class="due" />
          </span>
          <span class="length faint">
            <Time at={next} />
          </span>
        </div>
      )}
      <div class="bar-row scale">
        <span class="label" />
        <span class="track">
          <span>{attempts.length < job.attempts.length ? '' : 'created'}</span>
          <span>{duration(end - begin)}</span>
        </span>
        <span class="length" />
      </div>
    </div>
  );
}

function describe(pieces: readonly Piece[], begin: number, end: number): string {
  const each = pieces.map(
    ({ attempt, from, to }) =>
      `attempt ${attempt.attempt} ${attempt.state} after ${duration(from - begin)}, ran ${duration(to - from)}`,
  );
  return `${number(pieces.length)} attempts in ${duration(end - begin)}: ${each.join('; ')}`;
}

function AttemptItem({ of: attempt, isOpen }: { of: JobAttempt; isOpen: boolean }) {
  const { state, error, delay_ms: delay, worker_id: worker, target, ended_at, started_at } = attempt;
  return (
    <li>
      <div class="attempt-head">
        <strong>Attempt {attempt.attempt}</strong>
        <Badge look={[TONES[state]]} text={state} />
        {attempt.duration_ms !== undefined && (
          <span>
            ran <Duration ms={attempt.duration_ms} />
          </span>
        )}
        {delay !== undefined && (
          <span class="faint">
            after a delay of <Duration ms={delay} />
          </span>
        )}
        {(worker ?? target) && (
          <span class="faint">
            by <bdi class="mono">{worker ?? target}</bdi>
          </span>
        )}
        <span class="when">
          <Time at={ended_at ?? started_at} />
        </span>
      </div>
      {error && <ErrorOf error={error} isOpen={isOpen} />}
    </li>
  );
}
