/** The run of a job as a table: each attempt, step, sleep and signal on one time axis, with its details on demand. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { stepsInOrder } from '../../../job/step-order';
import { ErrorOf } from '../../components/error';
import { Icon } from '../../components/icon';
import { Json } from '../../components/json';
import { Facts } from '../../components/page';
import { Badge, Button, Duration, Foreign, Time } from '../../components/text';
import { api, can } from '../../core/api';
import { useNow } from '../../core/clock';
import { askAndAct } from '../../core/dialogs';
import { absolute, bytes, duration, number } from '../../core/format';
import { href, navigate, segment } from '../../core/router';
import { RETRIED } from './actions';
import { spansOf, type TraceRow } from './spans';
import { isAsleep, type Job } from './types';

/** Rows at first, the newest, and how many more are shown at a time. */
const SHOWN = 60;
const MORE = 240;

/** Shortest bar, in percent of the axis. */
const LEAST = 0.7;

export function Trace({ of: job, reload }: { of: Job; reload: () => void }) {
  const now = useNow();
  const [most, setMost] = useState(SHOWN);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const spans = spansOf(job, now);
  const rows = spans.slice(-most);
  const rest = spans.length - rows.length;
  const begin = Math.min(...rows.map(({ from, waits = from }) => Math.min(from, rest > 0 ? from : waits)));
  const axis = { begin, end: Math.max(begin + 1, ...rows.map(({ to }) => to)) };
  const failed = spans.findLast(({ attempt }) => attempt?.error)?.key;
  const toggle = (key: string) =>
    setToggled((held) => new Set(held.has(key) ? [...held].filter((one) => one !== key) : [...held, key]));
  return (
    <>
      {rest > 0 && (
        <Button class="link" onClick={() => setMost(most + MORE)}>
          {number(rest)} earlier
        </Button>
      )}
      <table class="trace" aria-label="Trace">
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col" class="axis">
              <span>0</span>
              <span>{duration(axis.end - axis.begin)}</span>
            </th>
            <th scope="col" class="end">
              Length
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((span) => (
            <Row
              key={span.key}
              {...{ span, axis }}
              onFork={can('admin:write') && can('data:write') ? (name) => fork(job, name) : undefined}
              onAgain={
                mayStartAgain(job) ? (name) => startAgain(job, name).then((done) => done && reload()) : undefined
              }
              isOpen={toggled.has(span.key) !== (span.key === failed)}
              onToggle={toggle}
            />
          ))}
        </tbody>
      </table>
      {spans.some(({ isRough }) => isRough) && (
        <p class="faint">
          The start of a step is not recorded. A striped bar is the time within which the step ran, or began to wait.
        </p>
      )}
    </>
  );
}

const mayStartAgain = (job: Job) => can('admin:write') && RETRIED.includes(job.state) && !isAsleep(job);

function startAgain({ id, steps, undo }: Job, from: string): Promise<boolean> {
  const all = stepsInOrder(steps).map(([name]) => name);
  const names = all.slice(all.indexOf(from));
  const forgotten = `${names.slice(0, 10).join(', ')}${names.length > 10 ? ` and ${names.length - 10} more` : ''}`;
  return askAndAct(
    {
      title: 'Run again from this step?',
      text: `The job forgets ${forgotten}, and runs them again. Earlier steps keep their results${undo ? ', unless they were undone' : ''}.`,
      action: 'Run again',
    },
    () => api.post(`admin/jobs/${segment(id)}/retry`, { from }),
    'It runs again.',
  );
}

async function fork({ id }: Job, from: string): Promise<void> {
  const question = {
    title: 'Fork from this step?',
    text: 'A copy of the job is enqueued. It begins with the results of the earlier steps, and without the checkpoint.',
    action: 'Fork',
  };
  const clone = async () => {
    const { job } = await api.post<{ job: { id: string } }>(`admin/jobs/${segment(id)}/clone`, { from });
    navigate(href(`jobs/${segment(job.id)}`));
  };
  await askAndAct(question, clone, 'The copy is enqueued.');
}

interface RowProps {
  span: TraceRow;
  axis: { begin: number; end: number };
  isOpen: boolean;
  onToggle: (key: string) => void;
  /** Starts the job, or a copy of it, from this step; absent: it cannot. */
  onAgain?: ((name: string) => void) | undefined;
  onFork?: ((name: string) => void) | undefined;
}

function Row({ span, axis, isOpen, onToggle, onAgain, onFork }: RowProps) {
  const { key, name, state, look, brief, isInner, isMoment, isRough, from, to } = span;
  const detail = detailOf(span);
  const named = <Foreign>{name}</Foreign>;
  return (
    <>
      <tr>
        <th scope="row" class={isInner ? 'inner' : ''}>
          {detail ? (
            <button type="button" class="fold" aria-expanded={isOpen} onClick={() => onToggle(key)}>
              <Icon name={isOpen ? 'down' : 'next'} size={12} />
              {named}
            </button>
          ) : (
            named
          )}{' '}
          {state && <Badge {...(look && { look })} text={state} />}
          {brief && !isOpen && (
            <span class="brief faint">
              <Foreign>{brief}</Foreign>
            </span>
          )}
        </th>
        <td title={absolute(from)}>
          <Bar {...{ span, axis }} />
        </td>
        <td class="end">{isMoment ? <Time at={to} /> : `${isRough ? '≤ ' : ''}${duration(to - from)}`}</td>
      </tr>
      {detail && isOpen && (
        <tr>
          <td colSpan={3} class="detail">
            {detail}
            {span.step && (
              <div class="actions">
                {onAgain && <Button icon="retry" label="Run again from here" onClick={() => onAgain(name)} />}
                {onFork && <Button icon="copy" label="Fork from here" onClick={() => onFork(name)} />}
              </div>
            )}
          </td>
        </tr>
      )}
    </>
  );
}

function Bar({ span, axis: { begin, end } }: Pick<RowProps, 'span' | 'axis'>) {
  const { from, to, waits = from, isRough, isMoment, look } = span;
  const x = (at: number) => (100 * (Math.max(begin, at) - begin)) / (end - begin);
  const width = Math.max(LEAST, isMoment ? 0 : x(to) - x(from));
  const left = Math.min(x(isMoment ? to : from), 100 - width);
  return (
    <span class="track">
      <i class="wait" style={{ left: `${x(waits)}%`, width: `${Math.max(0, left - x(waits))}%` }} />
      <i class={`run ${look?.[0] ?? ''} ${isRough ? 'rough' : ''}`} style={{ left: `${left}%`, width: `${width}%` }} />
      <span class="hidden">
        {isRough ? 'between' : 'from'} {duration(from - begin)}
        {!isMoment && ` ${isRough ? 'and' : 'to'} ${duration(to - begin)}`}
      </span>
    </span>
  );
}

/** What a row opens; undefined: nothing. */
function detailOf({ attempt, step, from, to }: TraceRow): ComponentChildren {
  if (attempt) {
    const { worker_id: worker, target, delay_ms: delay, error } = attempt;
    return (
      <>
        <Facts
          of={[
            ['Started', <Time at={from} />],
            ['Ended', attempt.ended_at && <Time at={attempt.ended_at} />],
            ['Delay before', delay !== undefined && <Duration ms={delay} />],
            ['Ran on', (worker ?? target) && <Foreign>{worker ?? target ?? ''}</Foreign>],
          ]}
        />
        {error && <ErrorOf error={error} isOpen />}
      </>
    );
  }
  if (!step) return undefined;
  if ('result' in step) return <Json value={step.result} label="result of the step" open={2} />;
  if (step.result_bytes !== undefined) return <Facts of={[['Result', bytes(step.result_bytes)]]} />;
  if ('error' in step) return <Json value={step.error} label="error of the step" open={2} />;
  if (step.signal) return <Json value={step.signal.payload} label="payload of the signal" open={2} />;
  return (
    <>
      <Facts
        of={[
          ['From', <Time at={from} />],
          [step.tries === undefined ? 'Until' : 'Next try', <Time at={step.until ?? to} />],
        ]}
      />
      {step.failed !== undefined && <Json value={step.failed} label="error of the last try" open={2} />}
    </>
  );
}
