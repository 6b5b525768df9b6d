/** `tocsin crons`, with `show`, `set`, `change`, `pause`, `resume`, `trigger`, `history` and `remove` */
import type { Command } from 'commander';
import type { CronGroupResult, CronGroupSummary } from '../../client/cron-groups';
import type { CronExecution, CronSkipped, CronStatus } from '../../client/cron-status';
import { pathTo } from '../../client/transport';
import { integer, json, type Session } from '../command';
import { type Fact, facts, type Terminal } from '../output';
import {
  bodyOf,
  fromFile,
  listed,
  readObject,
  removal,
  resourceCommand,
  type Said,
  shown,
  type TakenArguments,
  tableOf,
  verb,
} from '../resource';
import { ago, type Column, CRONS } from '../views';

interface Members {
  expression?: string;
  timezone?: string;
  overlap?: string;
  missed?: string;
  start?: string;
  end?: string;
  fires?: number;
  description?: string;
  file?: string;
}

interface Job {
  type?: string;
  args?: unknown;
  queue?: string;
}

const EXECUTIONS: readonly Column<CronExecution>[] = [
  ['JOB', ({ jobId }) => jobId],
  ['STATE', ({ state }) => state],
  ['BY', ({ trigger }) => trigger],
  ['FOR', ({ scheduledAt }) => scheduledAt],
  ['ENDED', ({ completedAt }, now) => ago(completedAt, now)],
];

const SKIPPED: readonly Column<CronSkipped>[] = [
  ['SKIPPED', ({ scheduledAt }) => scheduledAt],
  ['UNTIL', ({ scheduledUntil }) => scheduledUntil],
  ['BECAUSE', ({ reason, message }) => (message === undefined ? reason : `${reason}: ${message}`)],
  ['JOB', ({ jobId }) => jobId],
];

const GROUPS: readonly Column<CronGroupSummary>[] = [
  ['GROUP', ({ name }) => name],
  ['SCHEDULES', ({ count }) => count],
];

const ONE_GROUP: TakenArguments = [['<group>', 'name of the group']];

export function cronsCommand(terminal: Terminal): Command {
  return resourceCommand<{ group?: string }>(terminal, {
    name: 'crons',
    summary: 'list schedules and when they fire next',
    options: (command) => command.option('--group <name>', 'only schedules of this group'),
    list: (opened) => {
      const { group } = opened.options;
      const found = opened.tocsin.cron.list(group === undefined ? {} : { group });
      return listed(opened, 'crons', found, CRONS, 'No schedules.');
    },
    one: [['<name>', 'name of the schedule']],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a schedule and its next fires',
        run: async (opened, name = '') => one(opened, await opened.tocsin.cron.get(name)),
      }),
      verb<Members & Job>({
        name: 'set',
        summary: 'create a schedule, or replace the one with this name',
        options: (command) =>
          members(
            command
              .option('--type <type>', 'type of the job to enqueue')
              .option('--args <json>', 'arguments of the job: a JSON array', json)
              .option('--queue <name>', 'queue of the job'),
          ),
        async run(opened, name) {
          const body = { ...bodyFrom(opened.options), name };
          const { cron } = await opened.write('POST', '/cron', withJob(body, opened.options));
          return one(opened, cron as CronStatus);
        },
      }),
      verb<Members>({
        name: 'change',
        summary: 'change a schedule; its job is kept unless the file contains another',
        options: members,
        async run(opened, name = '') {
          const { cron } = await opened.write('PATCH', pathTo`/cron/${name}`, bodyFrom(opened.options));
          return one(opened, cron as CronStatus);
        },
      }),
      verb({
        name: 'pause',
        summary: 'pause a schedule; missed fires are not caught up',
        run: async ({ tocsin }, name = '') => standing(await tocsin.cron.pause(name)),
      }),
      verb({
        name: 'resume',
        summary: 'resume a schedule',
        run: async ({ tocsin }, name = '') => standing(await tocsin.cron.resume(name)),
      }),
      verb({
        name: 'trigger',
        summary: 'enqueue the job of a schedule now, in addition to its fires',
        async run({ tocsin }, name = '') {
          const job = await tocsin.cron.trigger(name);
          return { value: { job }, text: `${job.id}  ${job.type}  ${job.queue}  ${job.state}` };
        },
      }),
      verb<{ limit: number }>({
        name: 'history',
        summary: 'list jobs that a schedule enqueued recently, and skipped fires',
        options: (command) => command.option('--limit <n>', 'maximum number of jobs', integer(1, 50), 20),
        async run({ tocsin, options, terminal: { now } }, name = '') {
          const { executions, skipped } = await tocsin.cron.history(name, { limit: options.limit });
          const missed = tableOf(skipped, SKIPPED, '', now());
          const text = tableOf(executions, EXECUTIONS, 'No jobs enqueued yet.', now());
          return { value: { executions, skipped }, text: missed ? `${text}\n\n${missed}` : text };
        },
      }),
      verb({
        name: 'groups',
        summary: 'list groups of schedules',
        takes: [],
        run: (opened) => listed(opened, 'groups', opened.tocsin.cronGroups.list(), GROUPS, 'No groups.'),
      }),
      verb<{ file: string }>({
        name: 'set-group',
        summary: 'replace all schedules of a group; schedules not in the file are deleted',
        takes: ONE_GROUP,
        options: (command) =>
          command.requiredOption('--file <path>', 'JSON body, as over HTTP: {entries}; - reads standard input'),
        async run({ write, options, terminal: { now } }, name = '') {
          const answer: unknown = await write('PUT', pathTo`/cron-groups/${name}`, readObject(options.file));
          const group = answer as CronGroupResult;
          const { created, updated, unchanged, deleted } = group;
          const lists = Object.entries({ created, updated, unchanged, deleted });
          const text = lists.map(([what, names]): Fact => [what, names.join(', ')]);
          return { value: { group }, text: [facts(text), tableOf(group.entries, CRONS, '', now())].join('\n\n') };
        },
      }),
      removal('the group', ({ tocsin }, name = '') => tocsin.cronGroups.delete(name), {
        name: 'remove-group',
        summary: 'delete a group with all its schedules; their jobs are kept',
        takes: ONE_GROUP,
      }),
      removal('the schedule', ({ tocsin }, name = '') => tocsin.cron.delete(name), {
        summary: 'delete the schedule; its jobs are kept',
      }),
    ],
  });
}

function members(command: Command): Command {
  return fromFile(
    command
      .option('--expression <cron>', "cron expression: '0 2 * * MON-FRI', @daily, '@every 90s'")
      .option('--timezone <name>', 'time zone, such as Europe/Paris; default: UTC')
      .option('--overlap <policy>', 'if the previous job has not ended: skip, allow, cancel_previous, enqueue')
      .option('--missed <policy>', 'what to do with missed fires: skip, fire_once, fire_all')
      .option('--start <time>', 'do not fire before this time: RFC 3339')
      .option('--end <time>', 'do not fire after this time: RFC 3339')
      .option('--fires <n>', 'end after this many fires', integer(1, 1_000_000_000))
      .option('--description <text>', 'description, for operators'),
  );
}

function bodyFrom(options: Members): Record<string, unknown> {
  const { expression, timezone, overlap, missed, start, end, fires, description, file } = options;
  const policies = { overlap_policy: overlap, missed_policy: missed };
  const bounds = { start_at: start, end_at: end, limit: fires };
  return bodyOf(file, { expression, timezone, ...policies, ...bounds, description });
}

/** The job as options say it, over that of the file. */
function withJob(body: Record<string, unknown>, { type, args, queue }: Job): Record<string, unknown> {
  if (type === undefined && args === undefined && queue === undefined) return body;
  const template = (body.job_template ?? {}) as Record<string, unknown>;
  const options = queue === undefined ? template.options : { ...(template.options as object), queue };
  const job = {
    args: [],
    ...template,
    ...(type !== undefined && { type }),
    ...(args !== undefined && { args }),
    options,
  };
  return { ...body, job_template: job };
}

/** Names under which other clients look for the same. */
const AGAIN = { id: '', cron: '', schedule: '', options: '' };

const one = (opened: Session<object>, cron: CronStatus): Said => {
  const { nextFires = [] } = cron;
  const next = nextFires.length > 0 ? ['next fires', ...nextFires].join('\n  ') : '';
  return shown(opened, 'cron', cron, { ...AGAIN, nextFires: next });
};

const standing = (cron: CronStatus): Said => ({ value: { cron }, text: `${cron.name}  ${cron.status}` });
