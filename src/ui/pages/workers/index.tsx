/** Who runs jobs: workers that pull, known from their heartbeats, and the handlers that jobs are pushed to. */
import { useRef } from 'preact/hooks';
import type { TargetList } from '../../../contract/targets';
import type { WorkerList } from '../../../contract/workers';
import { PageHead, Section } from '../../components/page';
import { Button } from '../../components/text';
import { useGet } from '../../core/api';
import { useKeys } from '../../core/keyboard';
import { useLive } from '../../core/live';
import { pageNumber } from '../../core/router';
import { TargetTable } from './targets';
import { PER_PAGE, WorkerTable } from './workers';
import './workers.css';

/** Minimum interval between reads of the workers while jobs run, ms. */
const EVERY_MS = 2_000;

export default function WorkersPage() {
  const page = pageNumber();
  const workers = useGet<WorkerList>('admin/workers', { page, per_page: PER_PAGE });
  const targets = useGet<TargetList>('admin/targets', { limit: 200 });
  const askedAt = useRef(0);
  const reload = () => {
    askedAt.current = Date.now();
    workers.reload();
  };
  const both = () => {
    reload();
    targets.reload();
  };
  useLive('all', {
    onEvents: (events) => {
      const has = (begin: string) => events.some(({ event }) => event.startsWith(begin));
      // A worker that begins, ends or falls silent is shown at once; numbers of jobs follow.
      if (has('worker.') || (has('job.') && Date.now() - askedAt.current > EVERY_MS)) reload();
      if (has('queue.push_')) targets.reload();
    },
    onGap: both,
  });
  useKeys('Workers', { u: { label: 'Reload', run: both } });
  return (
    <div class="workers-page">
      <PageHead title="Workers" sub="Workers that pull jobs, and handlers that jobs are pushed to">
        <Button label="Reload" onClick={both} />
      </PageHead>
      <WorkerTable workers={workers} reload={reload} />
      <Section title="Push targets">
        <TargetTable targets={targets} />
      </Section>
    </div>
  );
}
