import { JOB_STATES } from '../../states';
import { definePage, numberText, warn } from '../page';
import { askJobs, hearJobs, type JobAnswer, loadJobs, showJobs } from './job-list';

export const jobs = definePage<JobAnswer>({
  ...{ id: 'jobs', title: 'Jobs', key: 'j', scope: 'admin:read' },
  states: JOB_STATES,
  searches: true,
  load: (api, place) => loadJobs(api, place),
  show: (answer, { q, fingerprint }, now) => ({
    facts: [
      ...(fingerprint ? [{ name: 'failures', value: fingerprint }] : []),
      ...(answer.counts ? [{ name: 'in each state', value: countsText(answer) }] : []),
      ...(q && answer.more
        ? [{ name: 'searched', value: warn(`the newest ${answer.searched} jobs; there are more`) }]
        : []),
    ],
    ...showJobs(answer, now),
  }),
  hear: (answer, events) => hearJobs(answer, events),
  ask: askJobs,
});

function countsText({ counts, countsExact }: JobAnswer): string {
  const some = JOB_STATES.filter((state) => (counts?.[state] ?? 0) > 0);
  const text = some.map((state) => `${state} ${numberText(counts?.[state] ?? 0)}`).join(' · ');
  return `${text || 'none'}${countsExact === false ? ' (at least)' : ''}`;
}
