import { useState } from 'preact/hooks';
import type { EnvelopeWaiting } from '../../../job/wire';
import { FormDialog, JsonField, textIn } from '../../components/form';
import { Icon } from '../../components/icon';
import { Button, Foreign, JobLink, Left, StateBadge, sentence, Time, Told } from '../../components/text';
import { api, can, useResource } from '../../core/api';
import { parseExact } from '../../core/exact';
import { href, segment } from '../../core/router';
import type { Job } from './types';

type Reason = EnvelopeWaiting['reason'];

const TITLES: Readonly<Record<Reason, string>> = {
  batch_undecided: 'An operation on several queues is being decided',
  pending: 'It must be activated',
  snoozed: 'Its handler snoozed it',
  signal: 'Its handler waits for a signal',
  run: 'Its handler waits for another job',
  delayed: 'It is scheduled for later',
  retry: 'It waits for its next attempt',
  queue_paused: 'Its queue is paused',
  maintenance: 'The deployment is in maintenance',
  group_paused: 'Its group is paused',
  group: 'Its group may start no other job now',
  key_limit: 'Its limit key has reached its limit',
  no_handler: 'No handler accepts its type',
  handler_down: 'Its handler is stopped after errors',
  chunk: 'It waits for the other jobs of its call',
  behind: 'Other jobs are ahead of it',
  concurrency: 'The concurrency limit is reached',
  queue_limit: 'The rate limit of its queue is reached',
  starting: 'It is about to start',
  no_worker: 'It waits for a worker to fetch it',
};

interface Remedy {
  href: string;
  text: string;
}

/** Where the wait can be ended, or understood. */
function remedyOf({ queue, waiting_for: waiting }: Job): Remedy | undefined {
  const own = `queues/${segment(queue)}`;
  const settings = { href: href(own, { tab: 'settings' }), text: 'Settings of the queue' };
  const workers = { href: href('workers'), text: 'Workers and targets' };
  const before = waiting?.job_id;
  const remedies: Partial<Record<Reason, Remedy>> = {
    queue_paused: { href: href(own), text: 'Resume the queue' },
    maintenance: { href: href('settings', { tab: 'deployment' }), text: 'Maintenance' },
    group_paused: { href: href(own, { tab: 'groups' }), text: 'Groups of the queue' },
    group: before ? { href: href(`jobs/${segment(before)}`), text: 'The job that it waits for' } : settings,
    key_limit: { href: href('limits'), text: 'Limits' },
    ...{ queue_limit: settings, concurrency: settings },
    ...{ handler_down: workers, no_handler: workers, no_worker: workers },
    behind: { href: href('jobs', { queue, state: 'available' }), text: 'Jobs that wait there' },
  };
  return waiting && remedies[waiting.reason];
}

/** It will not pass by itself, or should not have come. */
const ALARMING: readonly Reason[] = [
  ...(['queue_paused', 'group_paused', 'maintenance'] as const),
  ...(['key_limit', 'queue_limit', 'no_handler', 'handler_down'] as const),
];

/** "Waiting for confirmed, 1 d 23 h left", or what is the matter. */
const Title = ({ of: { reason, signal, until } }: { of: EnvelopeWaiting }) => (
  <strong>
    {signal === undefined
      ? (TITLES[reason] ?? reason)
      : sentence`Waiting for ${<em>{<Foreign>{signal}</Foreign>}</em>}`}
    {until && sentence`, ${<Left until={until} />} left`}
  </strong>
);

/** How many jobs deep a wait for jobs is followed. */
const DEEPEST = 3;

/** The job that this one waits for, and the jobs that those wait for. */
async function jobsBelow(job: Job, signal: AbortSignal): Promise<Job[]> {
  const below: Job[] = [];
  for (let at: Job = job; at.waiting_for?.reason === 'run' && at.waiting_for.job_id && below.length < DEEPEST; ) {
    at = await api.get<Job>(`admin/jobs/${segment(at.waiting_for.job_id)}`, {}, signal);
    below.push(at);
  }
  return below;
}

function Below({ of: job }: { of: Job }) {
  const below = useResource((signal) => jobsBelow(job, signal), [job]);
  return (
    <ol class="relatives" aria-label="Jobs that it waits for">
      {below.data?.map(({ id, type, state, waiting_for: waiting }) => (
        <li key={id}>
          <StateBadge state={state} />
          <Foreign>{type}</Foreign>
          <JobLink id={id} />
          {waiting && <Title of={waiting} />}
        </li>
      ))}
    </ol>
  );
}

export function Waiting({ of: job, reload }: { of: Job; reload: () => void }) {
  const [sending, setSending] = useState(false);
  const { waiting_for: waiting } = job;
  if (!waiting) return null;
  const remedy = remedyOf(job);
  const isCalm = !ALARMING.includes(waiting.reason);
  return (
    <aside class={`why ${isCalm ? 'calm' : ''}`} aria-label="Why it waits">
      <Icon name={isCalm ? 'waiting' : 'failures'} size={18} />
      <div>
        <Title of={waiting} />
        <p>
          <Told text={waiting.detail} />
        </p>
        {waiting.reason === 'run' && <Below of={job} />}
        <p class="faint">
          Since <Time at={waiting.since} />
          {remedy && sentence` · ${<a href={remedy.href}>{remedy.text}</a>}`}
        </p>
      </div>
      {waiting.reason === 'signal' && can('data:write') && (
        <Button label="Send signal" onClick={() => setSending(true)} />
      )}
      {waiting.signal !== undefined && sending && (
        <SignalDialog {...{ id: job.id, signal: waiting.signal, reload }} onClose={() => setSending(false)} />
      )}
    </aside>
  );
}

function SignalDialog(props: { id: string; signal: string; reload: () => void; onClose: () => void }) {
  const { id, signal, reload, onClose } = props;
  const send = async (form: FormData) => {
    const payload = textIn(form, 'payload');
    const body = payload === '' ? {} : { payload: parseExact(payload) };
    await api.post(`jobs/${segment(id)}/signals/${segment(signal)}`, body);
    return `The signal ${signal} was sent.`;
  };
  return (
    <FormDialog title={`Send ${signal}`} action="Send signal" onSubmit={send} onDone={reload} onClose={onClose}>
      <p class="note">The handler continues with this payload. Empty: it gets null.</p>
      <JsonField name="payload" label="Payload: JSON" rows={6} />
    </FormDialog>
  );
}
