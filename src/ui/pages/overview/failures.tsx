import { useState } from 'preact/hooks';
import type { FailureGroups } from '../../../contract/failures';
import { Badge } from '../../components/badge';
import { isIntended } from '../../components/error';
import { Newer } from '../../components/list';
import { Empty, Loaded, Section } from '../../components/page';
import { Foreign, Link, Time } from '../../components/text';
import { type Resource, useGet } from '../../core/api';
import { number } from '../../core/format';
import type { LiveEvent } from '../../core/live';
import { href } from '../../core/router';

const SHOWN = 5;

export interface FailuresHeld {
  groups: Resource<Pick<FailureGroups, 'items'>>;
  newer: number;
  show: () => void;
  onEvents: (events: readonly LiveEvent[]) => void;
}

export function useFailures(): FailuresHeld {
  const [newer, setNewer] = useState(0);
  const groups = useGet<Pick<FailureGroups, 'items'>>('admin/failures', { sort: 'last_seen', per_page: SHOWN });
  const show = () => {
    setNewer(0);
    groups.reload();
  };
  const onEvents = (events: readonly LiveEvent[]) => {
    const failed = events.filter(({ event }) => event === 'job.retrying' || event === 'job.discarded').length;
    if (failed === 0) return;
    // Nothing moves below the eyes of a reader; where there is nothing yet, nothing can.
    if (groups.data?.items.length === 0) groups.reload();
    else setNewer((count) => count + failed);
  };
  return { groups, newer, show, onEvents };
}

export function NewestFailures({ of: { groups, newer, show } }: { of: FailuresHeld }) {
  return (
    <Section title="Newest failures" actions={<a href={href('failures', { sort: 'last_seen' })}>All failures</a>}>
      <Newer count={newer} onShow={show} />
      <Loaded of={groups}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="check" title="No failures" />
          ) : (
            <ul class="failure-list card">
              {items.map(({ fingerprint, type, error, count, last_seen_at, sample }) => (
                <li key={fingerprint}>
                  <div class="line">
                    <Link to={href('failures', { group: fingerprint })} text={type} />
                    <span class="faint">
                      <Badge look={[isIntended(error) ? 'neutral' : 'red']} text={number(count)} />{' '}
                      <Time at={last_seen_at} />
                    </span>
                  </div>
                  <div class="message faint">
                    <Foreign>{sample.message || error.message}</Foreign>
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
