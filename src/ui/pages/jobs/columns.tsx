/** The columns of the list of jobs, and which of them this browser shows. */
import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import type { JobSummary } from '../../../contract/jobs';
import { Check } from '../../components/form';
import { Dialog } from '../../components/overlays';
import { type Column, column, timeColumn } from '../../components/table';
import { Button, Foreign, JobLink, Link, None, StateBadge, Time } from '../../components/text';
import { isHidden } from '../../core/api';
import { stringifyExact } from '../../core/exact';
import { brief, percent } from '../../core/format';
import { href, type Query, segment, withQuery } from '../../core/router';

const COLUMNS: readonly Column<JobSummary>[] = [
  column('state', 'State', ({ state, progress }) => (
    <>
      <StateBadge state={state} />
      {state === 'active' && progress !== undefined && <span class="faint num"> {percent(progress)}</span>}
    </>
  )),
  column('type', 'Type', { main: true }, ({ id, type, tags = [] }) => (
    <span class="what">
      <Link to={href(`jobs/${id}`)} text={type} />
      {tags.slice(0, 3).map((tag) => (
        <Link key={tag} class="tag" to={isHidden(tag) ? undefined : withQuery({ tag })} text={tag} />
      ))}
    </span>
  )),
  column('queue', 'Queue', ({ queue }) => <Link to={href(`queues/${segment(queue)}`)} text={queue} class="quiet" />),
  column(
    'group',
    'Group',
    { wide: true },
    ({ group }) =>
      group && (
        <Link {...(!isHidden(group) && { to: withQuery({ group }) })} text={group} title={group} class="brief" />
      ),
  ),
  column('args', 'Arguments', { wide: true }, ({ args = [] }) => (
    <Brief text={args.map((one) => stringifyExact(one, 0)).join(', ')} />
  )),
  column('id', 'Id', { wide: true }, ({ id }) => <JobLink id={id} />),
  column('attempts', 'Attempts', { end: true }, ({ attempt, max_attempts: most }) => (
    <span class={attempt === 0 ? 'faint' : ''}>{`${attempt}/${most}`}</span>
  )),
  column('priority', 'Priority', { end: true, wide: true, sort: true }, ({ priority }) => (
    <span class={priority === 0 ? 'faint' : ''}>{priority}</span>
  )),
  timeColumn('created_at', 'Created', { sort: true }),
  column('scheduled_at', 'Then', { end: true, sort: true }, (job) => <Then job={job} />),
  column('error', 'Last error', { wide: true }, ({ error, discard_reason }) => (
    <Brief text={error?.message ?? discard_reason} />
  )),
];

const KEY = 'tocsin.columns.jobs';

const hidden = signal(stored());

function stored(): readonly string[] {
  try {
    const ids = JSON.parse(localStorage.getItem(KEY) ?? '["id"]') as string[];
    return ids.filter((one) => COLUMNS.some(({ id, main }) => id === one && !main));
  } catch {
    return [];
  }
}

export const shownColumns = () => COLUMNS.filter(({ id }) => !hidden.value.includes(id));

/** What the server is asked for beside the summary of each job. */
export const detailQuery = (): Query => (hidden.value.includes('args') ? {} : { arguments: true });

export function ChooseColumns() {
  const [open, setOpen] = useState(false);
  const toggle = (id: string, on: boolean) => {
    const others = hidden.value.filter((one) => one !== id);
    hidden.value = on ? others : [...others, id];
    localStorage.setItem(KEY, JSON.stringify(hidden.value));
  };
  return (
    <>
      <Button label="Columns" onClick={() => setOpen(true)} />
      {open && (
        <Dialog title="Columns" onClose={() => setOpen(false)}>
          <p class="faint">This browser remembers them.</p>
          {COLUMNS.filter(({ main }) => !main).map(({ id, label }) => (
            <Check key={id} class="choice" checked={!hidden.value.includes(id)} onChange={(on) => toggle(id, on)}>
              {label}
            </Check>
          ))}
        </Dialog>
      )}
    </>
  );
}

/** A text in one line; all of it when it is pointed at. */
const Brief = ({ text = '' }: { text?: string | undefined }) =>
  text === '' ? null : (
    <span class="brief" title={text}>
      <Foreign>{brief(text, 160)}</Foreign>
    </span>
  );

function Then({ job }: { job: JobSummary }) {
  const [word, at] = thenOf(job);
  return at === undefined ? (
    <None />
  ) : (
    <span class="num">
      <span class="faint">{word}</span> <Time at={at} />
    </span>
  );
}

function thenOf(job: JobSummary): readonly [word: string, at: string | undefined] {
  const next: Partial<Record<string, readonly [string, string | undefined]>> = {
    scheduled: ['runs', job.scheduled_at],
    retryable: ['retries', job.next_attempt_at],
    active: ['began', job.started_at],
    completed: ['done', job.completed_at],
    cancelled: ['ended', job.cancelled_at],
    discarded: ['failed', job.discarded_at],
  };
  return next[job.state] ?? ['', undefined];
}
