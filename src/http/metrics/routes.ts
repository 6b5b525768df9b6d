/** Metrics for monitoring: as Prometheus reads them, and as JSON. */
import { scrape } from '../../across/metrics';
import { metrics as contract } from '../../contract/stats';
import { inParallel } from '../../durable/parallel';
import { invalidRequest, unwrap } from '../../job/errors';
import { queueObject } from '../../rpc/stubs';
import { type AppContext, asShown, media, unredacted } from '../context';
import { queueParam, wordParam } from '../request/query';
import { serve } from '../route';
import { exposition, type QueueGroups } from './prometheus';
import { renderMetrics } from './render';

const FORMATS = ['json', 'prometheus'] as const;
type Format = (typeof FORMATS)[number];

/** Routes from the root on: where scrapers look, and where clients of the protocol do. */
export const metricsRoutes = serve(contract, {
  scrape: (c) => metrics(c, 'prometheus'),
  show: (c) => metrics(c, 'json'),
});

async function metrics(c: AppContext, usual: Format) {
  const format = wordParam(c, 'format', FORMATS, takesText(c) ? 'prometheus' : usual);
  const reading = await scrape(c.env, Date.now());
  if (format === 'json') return unredacted(c, renderMetrics(reading));
  return media(c, exposition(reading, asShown(c)(await groupsOf(c))), 'text/plain');
}

/** Queues whose groups one scrape may count, and groups of each that are shown one by one. */
const MAX_QUEUES = 20;
const MAX_GROUPS = 100;

/** The groups of the queues that a scrape names. Counting them reads a part of each backlog, so none is usual. */
async function groupsOf(c: AppContext): Promise<QueueGroups[]> {
  const queues = queueParam(c, 'groups') ?? [];
  if (queues.length > MAX_QUEUES) throw invalidRequest('groups', `groups must name at most ${MAX_QUEUES} queues.`);
  return inParallel(queues, async (queue) => ({
    ...{ queue, ...unwrap(await queueObject(c.env, queue).groups({ offset: 0, limit: MAX_GROUPS })) },
  }));
}

/** Does the client ask for the text of Prometheus and for no JSON, as Prometheus and its kin do? */
function takesText(c: AppContext): boolean {
  const accepted = c.req.header('Accept')?.toLowerCase() ?? '';
  return /text\/plain|application\/openmetrics-text/.test(accepted) && !accepted.includes('json');
}
