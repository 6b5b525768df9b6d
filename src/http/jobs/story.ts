/** A job's whole story in one answer, for a page about it. */
import { isInside } from '../../across/bounds';
import { listJobs } from '../../across/job-list';
import { withJob } from '../../across/locate';
import type * as contract from '../../contract/jobs';
import { defined, given, isObject, parseObject } from '../../job/envelope/fields';
import { renderError } from '../../job/envelope/render';
import { unwrap } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import { driftOf } from '../../job/log';
import type { JobRecord, JobView } from '../../job/record';
import { parseSteps } from '../../job/steps';
import { formatInstant, withWrittenTimes } from '../../job/time';
import { type Attempt, attemptsOf, type TimelineEntry, timelineOf } from '../../job/timeline';
import type { JobStory } from '../../rpc/queue';
import type { AppContext } from '../context';
import { boundsOf, pageSeen, queuesWithin, within } from '../request/bounds';
import { searchMembers } from '../request/pagination';
import { stepsShown } from '../steps/routes';
import { envelopeOf } from './render';

/** Children that are shown, and jobs looked at to find them. */
const MAX_CHILDREN = 20;
const CHILDREN_BUDGET = 2_000;

export async function storyMembers(c: AppContext, story: JobStory): Promise<contract.JobStory> {
  const { record } = story.job;
  const steps = parseSteps(story.steps);
  const { progress, checkpoint } = story;
  const beside = {
    ...{ log: story.log, steps },
    ...(checkpoint && { checkpoint: { at: checkpoint.created_at, sequence: checkpoint.sequence } }),
    ...(progress?.at !== undefined && {
      progress: { at: progress.at, progress: progress.progress ?? 0, ...defined({ message: progress.message }) },
    }),
  };
  const body = parseObject(record.body) ?? {};
  const meta = isObject(body.meta) ? body.meta : {};
  const [parent, children] = await Promise.all([parentOf(c, meta.parent_id), childrenOf(c, record)]);
  return {
    attempts: attemptsOf(record).map(renderAttempt),
    timeline: timelineOf(record, beside).map(renderEntry),
    log: story.log,
    steps: stepsShown(c, steps),
    ...defined({ drift: story.log.flatMap((line) => [driftOf(line)]).findLast((names) => names !== undefined) }),
    checkpoint: checkpoint && renderCheckpoint(checkpoint),
    ...defined({ progress_message: progress?.message, progress_at: given(progress?.at, formatInstant) }),
    ...defined({ parent, workflow: workflowIn(body.workflow) }),
    ...(typeof meta.cron_name === 'string' && { cron_name: meta.cron_name }),
    children,
  };
}

const workflowIn = (value: unknown) => (isObject(value) ? (value as contract.JobStory['workflow'] & {}) : undefined);

const renderAttempt = ({ error, ...attempt }: Attempt) => ({
  ...withWrittenTimes(attempt),
  ...(error && { error: renderError(error) }),
});

const renderEntry = ({ at, ...entry }: TimelineEntry) => ({ at: formatInstant(at), ...entry });

const renderCheckpoint = ({ sequence, created_at, content }: JobStory['checkpoint'] & {}) => ({
  ...parseObject(content),
  sequence,
  created_at: formatInstant(created_at),
});

/** The job whose handler enqueued this one; only its id if it is gone. */
async function parentOf(c: AppContext, id: unknown): Promise<contract.JobRelative | undefined> {
  if (typeof id !== 'string') return undefined;
  const found = isUuidV7(id) ? await withJob(c.env, id, (queue) => queue.get(id)) : undefined;
  return found?.ok && isInside(boundsOf(c), unwrap(found)) ? briefOf(c, unwrap(found)) : { id };
}

/** The first jobs that this one's handler enqueued, as far as the newest jobs contain them. */
async function childrenOf(c: AppContext, { id, created_at }: JobRecord): Promise<contract.JobStory['children']> {
  const fields = [{ path: '.meta."parent_id"', values: [JSON.stringify(id)] }];
  const paging = { limit: MAX_CHILDREN, offset: 0, most: CHILDREN_BUDGET };
  const bounds = boundsOf(c);
  if (bounds) c.set('queues', await queuesWithin(c.env, bounds));
  const page = await listJobs(c.env, within(c, { filter: { fields, created: { min: created_at } } }), paging);
  return { items: page.jobs.map((view) => briefOf(c, view)), ...searchMembers(pageSeen(c, page)) };
}

function briefOf(c: AppContext, view: JobView): contract.JobRelative {
  const { id, type, queue, state, created_at } = envelopeOf(c, view);
  return { id, type, queue, state, created_at };
}
