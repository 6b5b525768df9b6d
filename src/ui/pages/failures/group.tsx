/** One group of failures, in a drawer: what went wrong, where, and what to do about it. */
import type { FailureGroup, FailureGroupFound } from '../../../contract/failures';
import { ErrorOf, isIntended, type JobError } from '../../components/error';
import type { StartedOperation } from '../../components/operation';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded } from '../../components/page';
import { Button, Foreign, JobLink, LinkButton, Names, Time } from '../../components/text';
import { can, useGet } from '../../core/api';
import { number } from '../../core/format';
import { href, query, segment } from '../../core/router';
import { atPath } from '../jobs/operations';

interface Props {
  fingerprint: string;
  /** Changes when the group's jobs have changed. */
  version: unknown;
  onAct: (action: 'redrive' | 'discard') => void;
}

export function GroupDrawer({ fingerprint, version, onAct }: Props) {
  const group = useGet<FailureGroupFound>(
    `admin/failures/${segment(fingerprint)}`,
    { queue: query('queue'), type: query('type'), state: query('state') },
    version,
  );
  const isGone = group.error?.status === 404 || group.data?.count === 0;
  return (
    <Drawer title="Failures" name="group">
      {isGone ? (
        <Empty icon="completed" title="No failures left">
          Its jobs were retried, completed or deleted.
        </Empty>
      ) : (
        <Loaded of={group}>
          {(found) => <Shown group={found as FailureGroupFound & FailureGroup} onAct={onAct} />}
        </Loaded>
      )}
    </Drawer>
  );
}

function Shown({ group, onAct }: { group: FailureGroupFound & FailureGroup; onAct: Props['onAct'] }) {
  const { fingerprint, type, error, count, dead, discarded, retrying, queues, sample, more } = group;
  const listed = { fingerprint, queue: query('queue') };
  const linkTo = (queue: string) => <a href={href('jobs', { fingerprint, queue })}>{queue}</a>;
  return (
    <>
      <div class="group-head">
        <strong class={isIntended(error) ? '' : 'red'}>
          <Foreign>{error.type ?? error.code ?? 'Error'}</Foreign>
        </strong>
        <p class="mono">
          <Foreign>{sample.message || error.message}</Foreign>
        </p>
      </div>
      <div class="actions">
        {can('admin:write') && (
          <Button class="primary" onClick={() => onAct('redrive')}>
            Redrive {number(count)}
            {more && '+'}
          </Button>
        )}
        {can('admin:purge') && <Button label="Discard" class="danger" onClick={() => onAct('discard')} />}
        <LinkButton label="Show the jobs" to={href('jobs', listed)} />
      </div>
      <Facts
        of={[
          ['Job type', <Foreign key="type">{type}</Foreign>],
          ['Grouped by', <Foreign key="pattern">{error.message}</Foreign>],
          ['Ended', isIntended(error) && 'as intended'],
          ['Dead letters', dead > 0 && number(dead)],
          ['Otherwise discarded', discarded > 0 && number(discarded)],
          ['Waiting for their retry', retrying > 0 && number(retrying)],
          ['First seen', <Time key="first" at={group.first_seen_at} />],
          ['Last seen', <Time key="last" at={group.last_seen_at} />],
          [queues.length === 1 ? 'Queue' : 'Queues', <Names key="queues" of={queues} show={linkTo} />],
        ]}
      />
      <Sample id={sample.job_id} message={sample.message} />
    </>
  );
}

function Sample({ id, message }: { id: string; message: string }) {
  const job = useGet<{ errors: readonly JobError[] }>(`admin/jobs/${segment(id)}`);
  const error = job.data?.errors.at(-1);
  return (
    <section class="section">
      <header>
        <h3>For example</h3>
        <JobLink id={id} />
      </header>
      {error ? <ErrorOf error={error} isOpen /> : <Foreign>{message}</Foreign>}
    </section>
  );
}

/** What narrows the groups that are listed narrows what is done to one of them; the age does not. */
function narrowed(): Record<string, unknown> {
  const names = ['queue', 'type', 'state'].filter((name) => query(name) !== '');
  return Object.fromEntries(names.map((name) => [name, query(name).split(',')]));
}

const WORDS = {
  redrive: {
    ...{ verb: 'Redrive', doing: 'Redriving', done: 'redriven' },
    text: 'They run again as soon as there is capacity, including those that wait for their next attempt.',
  },
  discard: {
    ...{ verb: 'Discard', doing: 'Discarding', done: 'deleted permanently', danger: true },
    text: 'They are deleted with their history, including those that wait for their next attempt. This cannot be undone.',
  },
};

export function onGroup(fingerprint: string, action: 'redrive' | 'discard'): StartedOperation {
  return { ...WORDS[action], ...atPath(`admin/failures/${segment(fingerprint)}/${action}`, narrowed()) };
}
