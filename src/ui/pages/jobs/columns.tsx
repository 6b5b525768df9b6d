/** The columns of the list of jobs. */
import type { JobSummary } from '../../../contract/jobs';
import { StateBadge } from '../../components/badge';
import type { Column } from '../../components/table';
import { Foreign, JobLink, Link, None, Time } from '../../components/text';
import { href, segment } from '../../core/base';
import { percent } from '../../core/format';
import { withQuery } from '../../core/router';
import { isHidden } from '../../core/session';

const MAX_ERROR = 160;

export const COLUMNS: readonly Column<JobSummary>[] = [
  {
    id: 'state',
    label: 'State',
    render: ({ state, progress }) => (
      <>
        <StateBadge state={state} />
        {state === 'active' && progress !== undefined && <span class="faint num"> {percent(progress)}</span>}
      </>
    ),
  },
  {
    id: 'type',
    label: 'Type',
    main: true,
    render: ({ id, type, tags = [] }) => (
      <span class="what">
        <Link to={href(`jobs/${id}`)} text={type} />
        {tags.slice(0, 3).map((tag) => (
          <a key={tag} class="tag" {...(!isHidden(tag) && { href: withQuery({ tag }) })}>
            <Foreign>{tag}</Foreign>
          </a>
        ))}
      </span>
    ),
  },
  {
    id: 'queue',
    label: 'Queue',
    render: ({ queue }) => <Link to={href(`queues/${segment(queue)}`)} text={queue} class="quiet" />,
  },
  { id: 'id', label: 'Id', wide: true, render: ({ id }) => <JobLink id={id} /> },
  {
    id: 'attempts',
    label: 'Attempts',
    end: true,
    render: ({ attempt, max_attempts: most }) => (
      <span class={attempt === 0 ? 'faint' : ''}>
        {attempt}/{most}
      </span>
    ),
  },
  {
    id: 'priority',
    label: 'Priority',
    end: true,
    wide: true,
    sort: true,
    render: ({ priority }) => <span class={priority === 0 ? 'faint' : ''}>{priority}</span>,
  },
  { id: 'created_at', label: 'Created', end: true, sort: true, render: ({ created_at }) => <Time at={created_at} /> },
  { id: 'scheduled_at', label: 'Then', end: true, sort: true, render: (job) => <Then job={job} /> },
  {
    id: 'error',
    label: 'Last error',
    wide: true,
    render: ({ error, discard_reason }) => shortError(error?.message ?? discard_reason),
  },
];

function shortError(text = '') {
  return text === '' ? null : (
    <span class="error-text" title={text}>
      <Foreign>{text.length > MAX_ERROR ? `${text.slice(0, MAX_ERROR)}…` : text}</Foreign>
    </span>
  );
}

/** What comes next, or what came last. */
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
