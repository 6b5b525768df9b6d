import type { CronGroupResult, CronGroupSummary } from '../../client/cron';
import type { CronExecution, CronSkipped, CronStatus } from '../../client/cron-entry';
import { pathTo } from '../../client/requests';
import { defined } from '../../job/envelope/fields';
import { type Arguments, action, integer, json, limitOf, type Result, resource, type Session } from '../command';
import { type Fact, facts } from '../output';
import { bodyOf, FILE, jobLine, listed, readObject, removal, shown, tableOf } from '../resource';
import { CRONS, columns, since } from '../views';

const EXECUTIONS = columns<CronExecution>({
  ...{ JOB: 'jobId', STATE: 'state', BY: 'trigger', FOR: 'scheduledAt', ENDED: since('completedAt') },
});

const SKIPPED = columns<CronSkipped>({
  ...{ SKIPPED: 'scheduledAt', UNTIL: 'scheduledUntil' },
  BECAUSE: ({ reason, message }) => (message === undefined ? reason : `${reason}: ${message}`),
  JOB: 'jobId',
});

const GROUPS = columns<CronGroupSummary>({ GROUP: 'name', SCHEDULES: 'count' });

const ONE_GROUP: Arguments = [['<group>', 'name of the group']];

const JOB = {
  type: ['--type <type>', 'type of the job to enqueue'],
  args: ['--args <json>', 'arguments of the job: a JSON array', json],
  queue: ['--queue <name>', 'queue of the job'],
} as const;

const MEMBERS = {
  expression: ['--expression <cron>', "cron expression: '0 2 * * MON-FRI', @daily, '@every 90s'"],
  timezone: ['--timezone <name>', 'time zone, such as Europe/Paris; default: UTC'],
  overlap_policy: ['--overlap <policy>', 'if the previous job has not ended: skip, allow, cancel_previous, enqueue'],
  missed_policy: ['--missed <policy>', 'what to do with missed fires: skip, fire_once, fire_all'],
  start_at: ['--start <time>', 'do not fire before this time: RFC 3339'],
  end_at: ['--end <time>', 'do not fire after this time: RFC 3339'],
  limit: ['--fires <n>', 'end after this many fires', integer(1, 1_000_000_000)],
  description: ['--description <text>', 'description, for operators'],
  ...FILE,
} as const;

const GROUP_FILE = ['--file <path>', 'JSON body, as over HTTP: {entries}; - reads standard input'] as const;

export const crons = resource(
  action(
    'crons',
    'list schedules and when they fire next',
    { flags: { group: ['--group <name>', 'only schedules of this group'] } },
    (opened) => listed(opened, 'crons', opened.tocsin.cron.list(opened.members), CRONS, 'No schedules.'),
  ),
  [['<name>', 'name of the schedule']],
  [
    action('show', 'show a schedule and its next fires', {}, async (opened, name) =>
      one(opened, await opened.tocsin.cron.get(name)),
    ),
    action(
      'set',
      'create a schedule, or replace the one with this name',
      { flags: { ...JOB, ...MEMBERS } },
      async (opened, name) => {
        const { type, args, queue, ...members } = opened.members;
        const body = withJob({ ...bodyOf(members), name }, { type, args, queue });
        const { cron } = await opened.write('POST', '/cron', body);
        return one(opened, cron as CronStatus);
      },
    ),
    action(
      'change',
      'change a schedule; its job is kept unless the file contains another',
      { flags: MEMBERS },
      async (opened, name) => {
        const { cron } = await opened.write('PATCH', pathTo`/cron/${name}`, bodyOf(opened.members));
        return one(opened, cron as CronStatus);
      },
    ),
    action('pause', 'pause a schedule; missed fires are not caught up', {}, async ({ tocsin }, name) =>
      statusOf(await tocsin.cron.pause(name)),
    ),
    action('resume', 'resume a schedule', {}, async ({ tocsin }, name) => statusOf(await tocsin.cron.resume(name))),
    action('trigger', 'enqueue the job of a schedule now, in addition to its fires', {}, async ({ tocsin }, name) => {
      const job = await tocsin.cron.trigger(name);
      return { value: { job }, text: jobLine(job) };
    }),
    action(
      'history',
      'list jobs that a schedule enqueued recently, and skipped fires',
      { flags: { limit: limitOf('jobs', 50) } },
      async ({ tocsin, members, terminal: { now } }, name) => {
        const { executions, skipped } = await tocsin.cron.history(name, members);
        const missed = tableOf(skipped, SKIPPED, '', now());
        const text = tableOf(executions, EXECUTIONS, 'No jobs enqueued yet.', now());
        return { value: { executions, skipped }, text: missed ? `${text}\n\n${missed}` : text };
      },
    ),
    action('groups', 'list groups of schedules', { takes: [] }, (opened) =>
      listed(opened, 'groups', opened.tocsin.cronGroups.list(), GROUPS, 'No groups.'),
    ),
    action(
      'set-group',
      'replace all schedules of a group; schedules not in the file are deleted',
      { takes: ONE_GROUP, needs: { file: GROUP_FILE } },
      async ({ write, members, terminal: { now } }, name) => {
        const answer: unknown = await write('PUT', pathTo`/cron-groups/${name}`, readObject(members.file));
        const group = answer as CronGroupResult;
        const { created, updated, unchanged, deleted } = group;
        const lists = Object.entries({ created, updated, unchanged, deleted });
        const text = lists.map(([what, names]): Fact => [what, names.join(', ')]);
        return { value: { group }, text: [facts(text), tableOf(group.entries, CRONS, '', now())].join('\n\n') };
      },
    ),
    removal('the group', ({ tocsin }, name = '') => tocsin.cronGroups.delete(name), {
      name: 'remove-group',
      summary: 'delete a group with all its schedules; their jobs are kept',
      takes: ONE_GROUP,
    }),
    removal('the schedule', ({ tocsin }, name = '') => tocsin.cron.delete(name), {
      summary: 'delete the schedule; its jobs are kept',
    }),
  ],
);

/** The job of the options over that of the file. */
function withJob(body: Record<string, unknown>, { queue, ...work }: Record<string, unknown>): Record<string, unknown> {
  if (work.type === undefined && work.args === undefined && queue === undefined) return body;
  const template = (body.job_template ?? {}) as Record<string, unknown>;
  const options = queue === undefined ? template.options : { ...(template.options as object), queue };
  return { ...body, job_template: { args: [], ...template, ...defined(work), options } };
}

/** Names under which other clients look for the same. */
const AGAIN = { id: '', cron: '', schedule: '', options: '' };

const one = (opened: Session, cron: CronStatus): Result => {
  const { nextFires = [] } = cron;
  const next = nextFires.length > 0 ? ['next fires', ...nextFires].join('\n  ') : '';
  return shown(opened, 'cron', cron, { ...AGAIN, nextFires: next });
};

const statusOf = (cron: CronStatus): Result => ({ value: { cron }, text: `${cron.name}  ${cron.status}` });
