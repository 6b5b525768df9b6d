import { pathTo } from '../../../client/requests';
import type { InspectedJob, JobStory } from '../../../contract/jobs';
import type { Named } from '../../../producer/names';
import { whenText } from '../../output';
import { explain, jobFacts } from '../../why';
import { type Cell, definePage, type Fact, faint, msText, type Row, stateCell } from '../page';
import { foreign, membersText, valueText } from '../text';

type Story = Named<Omit<InspectedJob, keyof JobStory> & Omit<JobStory, 'checkpoint'>>;

export const job = definePage<Story>({
  ...{ id: 'job', title: 'Job', scope: 'admin:read' },
  load: async (api, { name = '' }) => await api.get<Story>(`${pathTo`/admin/jobs/${name}`}?timeline=true`),
  show: (story, _, now) => {
    const { reason, text, hint } = explain(story, {}, now);
    const factOf = (name: string, value: unknown) =>
      name === 'state' ? stateCell(story.state) : foreign(valueText(name === 'args' ? story.args : value));
    const known = jobFacts(story, undefined, now).filter(([, value]) => value !== undefined && value !== '');
    return {
      facts: [
        [reason.replaceAll('_', ' '), { text: foreign(text), tone: 'strong' }],
        ['', hint ? faint(foreign(hint)) : undefined],
        ...known.map(([name, value]): Fact => [name, factOf(name, value)]),
        ['took', story.attempts.length > 0 ? story.attempts.map(attemptText).join(' · ') : undefined],
        ['parent', story.parent ? foreign(`${story.parent.id} ${story.parent.type ?? ''}`) : undefined],
      ],
      columns: [
        { label: 'WHEN', rank: 1 },
        { label: 'AFTER', end: true, rank: 2 },
        { label: 'WHAT' },
        { label: 'DETAIL' },
      ],
      rows: [...story.timeline.map((entry, index) => entryRow(entry, index, story, now)), ...childRows(story, now)],
      empty: 'No attempts yet.',
      subject: { kind: 'job', id: story.id, state: story.state },
    };
  },
  receive: (story, events) => (events.some(({ data }) => data.job_id === story.id) ? { reload: true } : {}),
});

const attemptText = ({ attempt, state, durationMs, workerId }: Story['attempts'][number]): string =>
  foreign(
    `${attempt}: ${state}${durationMs === undefined ? '' : ` in ${msText(durationMs)}`}${workerId ? ` at ${workerId}` : ''}`,
  );

function entryRow({ at, kind, ...members }: Story['timeline'][number], index: number, story: Story, now: number): Row {
  const since = msText(Date.parse(at) - Date.parse(story.timeline[index - 1]?.at ?? at));
  return { id: `${index}`, cells: [faint(whenText(at, now) ?? ''), `+${since}`, kindCell(kind), detailOf(members)] };
}

function kindCell(kind: string): Cell {
  const text = foreign(kind.replaceAll('_', ' '));
  if (/failed|discarded/.test(kind)) return { text, tone: 'bad' };
  return /completed/.test(kind) ? { text, tone: 'good' } : text;
}

function detailOf({ from, to, error, ...rest }: Record<string, unknown>): string {
  const { type, message } = (error ?? {}) as { type?: string; message?: string };
  const parts = [
    typeof to === 'string' ? `${from ?? ''} → ${to}` : '',
    message === undefined ? '' : `${type ? `${type}: ` : ''}${message}`,
    membersText(rest),
  ];
  return foreign(parts.filter(Boolean).join('  '));
}

const childRows = ({ children }: Story, now: number): Row[] =>
  children.items.map(({ id, type, state, createdAt }) => ({
    id,
    opens: { page: 'job', name: id },
    cells: [faint(whenText(createdAt, now) ?? ''), '', 'child', foreign(`${type}  ${state}  ${id}`)],
  }));
