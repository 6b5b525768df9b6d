import { useState } from 'preact/hooks';
import type { TimelineEntry } from '../../../contract/jobs';
import type { JobLogLine } from '../../../job/wire';
import { Badge, StateBadge, type Tone } from '../../components/badge';
import { JsonBrief } from '../../components/json';
import { SelectFilter } from '../../components/list';
import { Button, Copy, Foreign, Time } from '../../components/text';
import { duration, number, percent, timeOfDay } from '../../core/format';
import { query } from '../../core/router';
import type { Job } from './types';

const LEVELS: Readonly<Record<JobLogLine['level'], Tone>> = {
  debug: 'neutral',
  info: 'blue',
  warn: 'amber',
  error: 'red',
};

/** Log lines; `?level=` leaves out those below. */
export function Log({ of: lines }: { of: readonly JobLogLine[] }) {
  const names = Object.keys(LEVELS) as JobLogLine['level'][];
  const least = names.indexOf(query('level') as JobLogLine['level']);
  const shown = lines.filter(({ level }) => names.indexOf(level) >= least);
  if (lines.length === 0) return <p class="faint">No log lines.</p>;
  return (
    <>
      <div class="log-head">
        <SelectFilter
          name="level"
          label="Minimum level"
          all="All levels"
          options={Object.fromEntries(names.slice(1).map((name) => [name, `${name} and above`]))}
          replace
        />
        <Copy text={shown.map(lineText).join('\n')} label="log" />
      </div>
      <ol class="log" aria-live="polite">
        {shown.map((line, index) => (
          <Line key={`${line.at} ${index}`} of={line} />
        ))}
        {shown.length === 0 && <li class="faint">No line has this level.</li>}
      </ol>
    </>
  );
}

function Line({ of: { at, level, message, fields } }: { of: JobLogLine }) {
  return (
    <li class={level}>
      <time dateTime={new Date(at).toISOString()}>{timeOfDay(at)}</time>
      <Badge look={[LEVELS[level] ?? 'neutral']} text={level} />
      <span>
        <Foreign>{message}</Foreign>
        {fields && (
          <>
            {' '}
            <JsonBrief value={fields} label="fields" />
          </>
        )}
      </span>
    </li>
  );
}

function lineText({ at, level, message, fields }: JobLogLine): string {
  return `${new Date(at).toISOString()} ${level} ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`;
}

/** Entries of the timeline at first. */
const SHOWN = 40;

/** An attempt's beginning and end say by themselves how the state changed; log lines have a place of their own. */
function worthTelling(entry: TimelineEntry, _: number, all: readonly TimelineEntry[]): boolean {
  if (entry.kind !== 'state_changed') return entry.kind !== 'log';
  return !all.some(({ kind, at }) => at === entry.at && kind.startsWith('attempt_'));
}

export function Timeline({ of: { timeline } }: { of: Job }) {
  const [shown, setShown] = useState(SHOWN);
  const entries = timeline.filter(worthTelling);
  const rest = entries.length - shown;
  return (
    <>
      {rest > 0 && (
        <Button class="link" onClick={() => setShown(shown + 10 * SHOWN)}>
          {number(rest)} earlier
        </Button>
      )}
      <ol class="story">
        {entries.slice(-shown).map((entry, index) => (
          <li key={`${entry.at} ${entry.kind} ${index}`} class={toneOf(entry)}>
            <span>{wordsOf(entry)}</span>
            <span class="faint">
              <Time at={entry.at} />
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}

function toneOf({ kind, to }: TimelineEntry): string {
  if (/failed|discarded/.test(kind) || to === 'discarded') return 'red';
  if (/completed/.test(kind) || to === 'completed') return 'green';
  if (/snoozed|cancelled/.test(kind) || to === 'retryable') return 'amber';
  return /attempt_started|progress|checkpoint|step/.test(kind) || to === 'active' ? 'violet' : '';
}

function wordsOf(entry: TimelineEntry) {
  const { kind, attempt, from, to, backoff_ms: backoff, reason, progress, sequence, name } = entry;
  const { type, message } = (entry.error ?? {}) as { type?: string; message?: string };
  const foreign = (text: unknown) => <Foreign>{cut(String(text ?? ''))}</Foreign>;
  switch (kind) {
    case 'created':
      return <>Created</>;
    case 'state_changed':
      return (
        <>
          {from !== null && from !== undefined && <StateBadge state={String(from)} />} →{' '}
          <StateBadge state={String(to)} />
        </>
      );
    case 'attempt_started':
      return (
        <>
          Attempt {String(attempt)} began{entry.worker_id !== undefined && <> on {foreign(entry.worker_id)}</>}
        </>
      );
    case 'attempt_failed':
      return (
        <>
          Attempt {String(attempt)} failed: {foreign(type)} {foreign(message)}
          {typeof backoff === 'number' && <span class="faint"> next after {duration(backoff)}</span>}
        </>
      );
    case 'attempt_completed':
      return <>Attempt {String(attempt)} completed</>;
    case 'snoozed':
      return <>{entry.signal === undefined ? 'Sleeps' : <>Waits for the signal {foreign(entry.signal)}</>}</>;
    case 'cancelled':
      return <>Cancelled</>;
    case 'discarded':
      return (
        <>
          {entry.dead_letter === true ? 'Became a dead letter' : 'Discarded'}
          {reason ? <>: {foreign(reason)}</> : ''}
        </>
      );
    case 'progress':
      return (
        <>
          Progress {typeof progress === 'number' && percent(progress)} {foreign(entry.message)}
        </>
      );
    case 'checkpoint':
      return <>Checkpoint {String(sequence)}</>;
    case 'step':
      return (
        <>
          Step {foreign(name)}: {entry.is === 'signal' ? 'the signal arrived' : 'the wait ends'}
        </>
      );
    default:
      return foreign(kind);
  }
}

const cut = (text: string): string => (text.length > 160 ? `${text.slice(0, 160)}…` : text);
